"""Loupe's folder in the user's cache: what can be fetched or made again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from loupe.errors import cannot_write


def cache_root() -> Path:
    """`loupe` in $XDG_CACHE_HOME, else in ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache else Path.home() / ".cache") / "loupe"


def why_not_kept() -> str:
    """Why nothing new can be kept in the cache, "" where it can. The work goes on without, only slower."""
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_root()) as file:
            file.write(bytes(4096))
    except OSError as error:
        return cannot_write(cache_root(), error).message
    return ""
