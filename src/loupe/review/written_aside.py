"""New content for a file, whole or not at all: written beside it, synced, then put in its place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from loupe.runs.files import sync_folder


@contextlib.contextmanager
def written_aside(path: Path, content: bytes, *, mode: int | None) -> Iterator[Path]:
    """The content under another name, safe on the disk; gone afterwards unless it was given the file's place.

    `mode`: permissions, None for those of any new file. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # The new content is there; not every file system syncs folders.
        sync_folder(path.parent)
