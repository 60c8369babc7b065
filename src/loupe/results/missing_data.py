"""Report about pages and references that are not on this machine, and how to bring them."""

from __future__ import annotations

from pathlib import Path

from loupe.errors import LoupeError, word
from loupe.runs.folder import RunFolder


def missing_data(run: RunFolder, error: Exception) -> str:
    """The note above the numbers of a run whose samples could not be read again."""
    return (
        f"Pages and references are missing ({error}). Numbers and answers are complete. To bring them: "
        f"{_way_back(run, error)}"
    )


def _way_back(run: RunFolder, error: Exception) -> str:
    info = run.info
    own = Path(info.benchmark)
    if own.is_absolute() and not own.exists():
        return f"copy {own.name} to {own}"
    if info.data:
        return f"copy the data to {info.data}, or name its folder: loupe score {word(run.path)} --data DIR"
    return (error.hint if isinstance(error, LoupeError) else "") or f"see: loupe bench show {word(info.benchmark)}"
