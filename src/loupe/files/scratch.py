"""Folders for pages on their way: the user's documents, which nobody may leave lying about.

What a killed process left is taken away by the next process that needs such a folder. Who holds the lock of a folder
still needs it: the system drops the lock when its holder dies, however it dies.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "in-use"
_laid = contextlib.ExitStack()


@contextmanager
def scratch_folder(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """A private folder whose name starts so, gone at the end; in `place` instead of the folder for temporary files."""
    _sweep_once(prefix, place or Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as name:
        lock = _locked(Path(name))
        try:
            yield Path(name)
        finally:
            os.close(lock)


@contextmanager
def named_folder(path: Path) -> Iterator[None]:
    """A private folder of this name, which nobody else can know, gone at the end."""
    path.mkdir(mode=0o700)
    lock = _locked(path)
    try:
        yield
    finally:
        os.close(lock)
        shutil.rmtree(path)


def lent_folder(prefix: str, place: Path) -> tuple[Path, int]:
    """Return a new, empty, private folder in `place`, and a descriptor: whoever inherits it still needs the folder."""
    place.mkdir(parents=True, exist_ok=True)
    sweep(prefix, place)
    holder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    lock = _locked(holder)
    folder = holder / "empty"
    folder.mkdir()
    return folder, lock


def take_back(folder: Path) -> None:
    """Take away a lent folder with all that was left in it."""
    shutil.rmtree(folder.parent, ignore_errors=True)


def sweep(prefix: str, place: Path | None = None) -> None:
    """Take away the folders whose name starts so, and whose processes ended without doing it themselves."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("rb") as lock:
                _take(lock.fileno())
                shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _sweep_once(prefix: str, place: Path) -> None:
    """Sweep at the first call of this process: a listing takes its time, and every page needs a folder."""
    sweep(prefix, place)


def _locked(folder: Path) -> int:
    """Lock a new folder; it is this process's until the descriptor is closed here and wherever it was inherited."""
    new = folder / f"{_LOCK}.new"
    lock = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    _take(lock)
    # Under its own name it is locked from the start.
    new.rename(folder / _LOCK)
    return lock


def _take(descriptor: int) -> None:
    """Lock an open file, or raise BlockingIOError where another process has it."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lay_down(name: str, content: bytes) -> Path:
    """A file of this name for what this process works on just now, until `clear_away`."""
    path = _laid.enter_context(scratch_folder("loupe-page-")) / name
    path.write_bytes(content)
    return path


def clear_away() -> None:
    """Take away the files that were laid down."""
    _laid.close()
