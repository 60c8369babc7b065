"""A file that is written under another name, and then given its own: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loupe.errors import WriteError, cannot_write
from loupe.files.left_behind import sweep_once, temporary_name
from loupe.files.plain import check_replaceable, writing

#: The disk is full, the quota is used up, the file is too large.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Draft:
    """A file that has not got its name yet; write to `file`."""

    file: BinaryIO
    _folder: int
    _own: str
    _name: str
    _place: Path
    _sync: bool
    placed: bool = False

    def settle(self) -> None:
        """Put what was written on the disk."""
        self.file.flush()
        if self._sync:
            os.fsync(self.file.fileno())

    def replace(self) -> None:
        """Give it its name, in place of the file that has it."""
        self.settle()
        check_replaceable(self._folder, self._name, self._place)
        self._rename()

    def put(self) -> None:
        """Give it its name. Raises FileExistsError where anything has it: nothing is overwritten."""
        self.settle()
        try:
            os.link(self._own, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self.placed = True
            with contextlib.suppress(OSError):
                os.unlink(self._own, dir_fd=self._folder)
        except FileExistsError:
            raise
        except OSError:  # Not every file system has links: the name is taken first, then the file put in.
            taken = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self._name, taken, 0o666, dir_fd=self._folder))
            try:
                self._rename()
            except BaseException:
                os.unlink(self._name, dir_fd=self._folder)
                raise
        if self._sync:
            synced(self._folder)

    def _rename(self) -> None:
        os.rename(self._own, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.placed = True
        if self._sync:
            synced(self._folder)


@contextlib.contextmanager
def new_draft(folder: int, name: str, place: Path, *, mode: int | None = None, sync: bool = True) -> Iterator[Draft]:
    """A draft of the file `name` in an open folder; gone afterwards unless it was given its name."""
    sweep_once(folder)
    with writing(place):
        own, descriptor = _new_file(folder)
    draft = Draft(os.fdopen(descriptor, "w+b"), folder, own, name, place, sync)
    try:
        with draft.file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            yield draft
    except OSError as error:
        # Of what goes wrong in the block, only a full disk is certainly about this file.
        if isinstance(error, WriteError) or error.errno not in _FULL:
            raise
        raise cannot_write(place, error) from None
    finally:
        if not draft.placed:
            with contextlib.suppress(OSError):
                os.unlink(own, dir_fd=folder)


def _new_file(folder: int) -> tuple[str, int]:
    """Make a temporary file and take its lock; its name and descriptor."""
    while True:
        own = temporary_name()
        descriptor = os.open(own, _NEW, 0o666, dir_fd=folder)
        with contextlib.suppress(OSError):  # Not every file system has locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return own, descriptor
        os.close(descriptor)  # Before it was locked, another process took it for one that was left behind.


def synced(folder: int) -> None:
    """Make a new or renamed entry survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        os.fsync(folder)
