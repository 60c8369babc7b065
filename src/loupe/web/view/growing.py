"""Reading a file of lines that somebody else is still writing: what is new since the last look, whole lines only."""

from __future__ import annotations

import os
from dataclasses import dataclass

from loupe.files.folder import Folder

#: What is read at once; the rest waits for the next look.
_PORTION = 256 << 20


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

    def look(self) -> tuple[bool, list[tuple[int, bytes]]]:
        """Whether the file was begun anew, and each new line with its offset, without its end."""
        try:
            with self.folder.open(self.name) as file:
                found = os.fstat(file.fileno())
                same_size = found.st_size == self._offset and found.st_mtime_ns != self._changed
                anew = found.st_ino != self._inode or found.st_size < self._offset or (same_size and self._offset > 0)
                self._changed = found.st_mtime_ns
                if anew:
                    self._inode, self._offset = found.st_ino, 0
                if found.st_size == self._offset:
                    return anew, []
                file.seek(self._offset)
                data = file.read(min(_PORTION, found.st_size - self._offset))
        except FileNotFoundError:
            gone = self._inode != -1
            self._inode, self._offset = -1, 0
            return gone, []
        whole = data.rfind(b"\n") + 1
        lines, start = [], 0
        while start < whole:
            end = data.index(b"\n", start)
            if data[start:end].strip():
                lines.append((self._offset + start, data[start:end]))
            start = end + 1
        self._offset += whole
        return anew, lines
