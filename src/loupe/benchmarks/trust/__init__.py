"""Which benchmark files may be executed because a run.json names them: those that the user ran here, unchanged.

A run folder may come from somebody else. A path typed by the user is their decision; a path in a file is not.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

_SEEN: set[str] = set()


def remember(path: Path) -> None:
    """The user named this file: from now on its present content may be executed here."""
    digest = _digest(path)
    _SEEN.add(digest)
    # Without a writable home the decision lasts as long as the process.
    with contextlib.suppress(OSError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / digest).touch()


def is_known(path: Path) -> bool:
    """Whether the user ran this file here, with the content that it has now."""
    digest = _digest(path)
    return digest in _SEEN or (_folder() / digest).exists()


def _folder() -> Path:
    return Path.home() / ".cache" / "loupe" / "benchmark-files"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
