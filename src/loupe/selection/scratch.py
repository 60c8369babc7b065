"""A folder for the pictures of one selection: the user's documents, which nobody may leave lying about.

What a killed selection left is taken away by the next one. Who holds the lock of a folder still needs it: the system
drops the lock when its holder dies, however it dies.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "loupe-select-"
_LOCK = "in-use"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of its own, gone at the end."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        new = folder / f"{_LOCK}.new"
        with new.open("wb") as lock:
            _take(lock.fileno())
            # Under its own name it is locked from the start.
            new.rename(folder / _LOCK)
            yield folder


def sweep() -> None:
    """Take away the folders of selections that ended without doing so themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("rb") as lock:
                _take(lock.fileno())
                shutil.rmtree(folder, ignore_errors=True)


def _take(descriptor: int) -> None:
    """Lock an open file, or raise BlockingIOError where another process has it."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
