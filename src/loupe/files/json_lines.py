"""Append-only files of JSON lines: what was acknowledged is on the disk, and a torn last line is nobody's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from loupe.errors import UnsafeFileError, cannot_write
from loupe.files.folder import LARGEST_RECORD, Folder
from loupe.files.plain import writing


def read_lines(
    folder: Folder, name: str, tell: Callable[[bytes], object] = lambda _: None
) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number from 1, byte offset, line without its end) of every whole line; a torn last line is left out.

    `tell` is called with every line, its end included, also with blank lines and a torn one: it gets the whole file.
    Raises UnsafeFileError for a line that is too long to be a record.
    """
    try:
        file = folder.open(name)
    except FileNotFoundError:
        return
    offset = 0
    with file:
        for number, line in enumerate(bounded_lines(file, folder.path / name), 1):
            tell(line)
            if line.endswith(b"\n") and line.strip():
                yield number, offset, line[:-1]
            offset += len(line)


def bounded_lines(file: BinaryIO, place: Path) -> Iterator[bytes]:
    """The lines of a file with their ends. Raises UnsafeFileError for one that is too long to be a record."""
    for number, line in enumerate(iter(lambda: file.readline(LARGEST_RECORD), b""), 1):
        if len(line) == LARGEST_RECORD and not line.endswith(b"\n"):
            raise UnsafeFileError(
                f"{place}, line {number}: longer than {LARGEST_RECORD // 10**6:,} MB",
                hint=f"no record is so long; delete line {number}",
            )
        yield line


@contextlib.contextmanager
def replacing_lines(folder: Folder, name: str) -> Iterator[Callable[[bytes], None]]:
    """A function that takes lines without their ends: they replace the file, whole or not at all, at the end."""
    with folder.draft(name) as draft:
        yield lambda line: draft.file.writelines((line, b"\n"))
        draft.replace()


class RecordLog:
    """An append-only file of JSON lines. What `append` returned from is on the disk; opening drops a torn last line."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.path = folder.path / name
        self._file, _ = folder.open_appending(name)
        with writing(self.path):
            self._drop_torn_line()

    def _drop_torn_line(self) -> None:
        """A record without its line end was never acknowledged to anybody: the process died while writing it."""
        data_end = self._file.seek(0, os.SEEK_END)
        keep = data_end
        while keep > 0:
            start = max(0, keep - 65536)
            cut = os.pread(self._file.fileno(), keep - start, start).rfind(b"\n")
            if cut >= 0:
                keep = start + cut + 1
                break
            keep = start
        if keep != data_end:
            self._file.truncate(keep)
            os.fsync(self._file.fileno())

    def append(self, lines: Iterable[bytes], *, sync: bool = True) -> None:
        """Write whole lines (without line ends), and wait until they are on the disk unless they can be made again."""
        data = memoryview(b"".join(line + b"\n" for line in lines))
        with writing(self.path):
            end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) :]
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            # Half a line must not stay: the next record would be glued to it.
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise cannot_write(self.path, error) from None

    def close(self) -> None:
        """Close the file; nothing is pending."""
        self._file.close()

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
