"""Reading data files by their path: links are followed, as folders of data have them, but only plain files are read.

A pipe that nobody writes to would be waited for without end, and a device like /dev/zero has no end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from loupe.errors import UnsafeFileError
from loupe.files.json_lines import bounded_lines
from loupe.files.plain import not_a_file

#: Ground truth and answers in one JSON document are read whole; those of the largest benchmark have 60 MB.
LARGEST = 512 << 20


def plain_file(path: Path) -> Path:
    """The path itself, for libraries that open it. Raises UnsafeFileError for what is no plain file, else OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(path, found)
    return path


def real_path(path: Path) -> Path:
    """Where a path leads, every link followed; a link that leads to itself leads to itself, which no file is."""
    return Path(os.path.realpath(path))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path stays in the folder when every link is followed; one that no system could have does not."""
    try:
        return real_path(path).is_relative_to(real_path(folder))
    except (OSError, ValueError):
        return False


def open_data(path: Path) -> BufferedReader:
    """The file, for reading. Raises UnsafeFileError for what is no plain file, else OSError."""
    plain_file(path)
    return path.open("rb")


def read_data(path: Path, *, limit: int = LARGEST) -> bytes:
    """The file's bytes. Raises UnsafeFileError if they are more than `limit` or it is no plain file, else OSError."""
    with open_data(path) as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
    if len(data) > limit:
        raise UnsafeFileError(
            f"{path}: larger than {limit >> 20:,} MB, which is the most for a file that is read whole",
            hint="check that it is the right file",
        )
    return data


def data_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number from 1 and bytes of each line that is not blank, its end included. Raises as `read_data` does."""
    with open_data(path) as file:
        for number, line in enumerate(bounded_lines(file, path), 1):
            if line.strip():
                yield number, line
