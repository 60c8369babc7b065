"""Digests of what a run reads, so that two runs can prove they read the same pages."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, or "missing" where there is none (the sample then fails on its own)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "missing"
