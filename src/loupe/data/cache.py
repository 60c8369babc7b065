"""Loupe's folder in the user's cache: what can be fetched or made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """`loupe` in $XDG_CACHE_HOME, else in ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache else Path.home() / ".cache") / "loupe"
