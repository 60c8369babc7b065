"""A file that is written under another name, and then given its own: whole or not at all."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loupe.files.plain import check_replaceable


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
        """What was written is on the disk when this returns."""
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


def synced(folder: int) -> None:
    """Make a new or renamed entry survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        os.fsync(folder)
