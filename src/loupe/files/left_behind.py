"""Give processes temporary names to write under, and remove what killed processes left there.

A process that writes holds the lock of its file or folder. The system drops it when the process dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator

_TEMPORARY = re.compile(r"\.loupe-[0-9a-f]{16}\.tmp")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds to wait for a process that removes a large folder and so holds the lock of the folder above.
_PATIENCE, _STEP = 5.0, 0.02
_swept: set[tuple[int, int]] = set()


def temporary_name(mark: str = "") -> str:
    """Return a name that nobody can guess, for a file or folder that is not whole yet; `mark` are its first digits.

    >>> len(temporary_name("0123abcd"))
    27
    """
    return f".loupe-{mark}{secrets.token_hex(8)[len(mark) :]}.tmp"


def sweep(folder: int) -> None:
    """Remove what killed processes left in an open folder of drafts and of unfinished folders."""
    with contextlib.suppress(OSError):
        if left := list(filter(_TEMPORARY.fullmatch, os.listdir(folder))):
            with _taking_turns(folder):
                for name in left:
                    remove_left(folder, name)


def sweep_once(folder: int) -> None:
    """Sweep a folder at the first call of this process for it: listing many files takes time."""
    found = os.fstat(folder)
    if (found.st_dev, found.st_ino) not in _swept:
        _swept.add((found.st_dev, found.st_ino))
        sweep(folder)


def remove_left(folder: int, name: str) -> bool:
    """Remove a temporary file or folder of this user. Return False if a process is still writing to it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(name, _OPEN, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(descriptor)
            if found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
            elif found.st_uid == os.geteuid():
                os.unlink(name, dir_fd=folder)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
    return True


def new_folder(parent: int, mark: str, mode: int) -> tuple[str, int] | None:
    """Make an unfinished folder, lock it, and return its name and descriptor; None if another process has one.

    What a killed process left under the same mark of eight digits is removed first.
    """
    with _taking_turns(parent):
        for other in os.listdir(parent):
            if _TEMPORARY.fullmatch(other) and other.startswith(f".loupe-{mark}") and not remove_left(parent, other):
                return None
        name = temporary_name(mark)
        os.mkdir(name, mode, dir_fd=parent)
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
        with contextlib.suppress(OSError):  # Not every file system has locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return name, descriptor


@contextlib.contextmanager
def _taking_turns(folder: int) -> Iterator[None]:
    """Hold the lock of an open folder. After 5 seconds in which another process holds it, go on without it."""
    descriptor = os.open(".", _FOLDER, dir_fd=folder)
    try:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(_STEP)
                    continue
            except OSError:
                pass
            break
        yield
    finally:
        os.close(descriptor)
