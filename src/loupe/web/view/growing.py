"""Reading a file of lines that somebody else is still writing: what is new since the last look, whole lines only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from loupe.files.folder import Folder

#: Bytes that are held at once.
_PORTION = 32 << 20


@dataclass(slots=True)
class GrowingFile:
    """A file and how far it was read. A torn last line is left for the next look.

    A file that has changed and not grown was written anew, also where its name and inode stayed.
    """

    folder: Folder
    name: str
    _inode: int = -1
    _offset: int = 0
    _changed: int = -1

    def look(self) -> tuple[bool, Iterator[tuple[int, bytes]]]:
        """Whether the file was begun anew, and each new line with its offset, without its end; take all of them."""
        try:
            with self.folder.open(self.name) as file:
                found = os.fstat(file.fileno())
                same_size = found.st_size == self._offset and found.st_mtime_ns != self._changed
                anew = found.st_ino != self._inode or found.st_size < self._offset or (same_size and self._offset > 0)
                self._changed = found.st_mtime_ns
                if anew:
                    self._inode, self._offset = found.st_ino, 0
        except FileNotFoundError:
            gone = self._inode != -1
            self._inode, self._offset = -1, 0
            return gone, iter(())
        return anew, self._lines(found.st_ino, found.st_size)

    def _lines(self, inode: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The whole lines from where the last look ended to `end`."""
        if self._offset == end:
            return
        with self.folder.open(self.name) as file:
            if os.fstat(file.fileno()).st_ino == inode:  # else the next look begins anew
                file.seek(self._offset)
                yield from self._portions(file, end)

    def _portions(self, file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
        rest = b""
        while data := file.read(min(_PORTION, end - self._offset - len(rest))):
            data = rest + data
            start = 0
            while (stop := data.find(b"\n", start)) >= 0:
                if data[start:stop].strip():
                    yield self._offset + start, data[start:stop]
                start = stop + 1
            self._offset += start
            rest = data[start:]
