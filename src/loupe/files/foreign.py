"""Reading data files by their path: links are followed, as folders of data have them, but only plain files are read.

A pipe that nobody writes to would be waited for without end, and a device like /dev/zero has no end.
"""

from __future__ import annotations

import codecs
import functools
import os
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path

from loupe.errors import UnsafeFileError, word
from loupe.files.file_names import same_form
from loupe.files.json_lines import bounded_lines
from loupe.files.plain import not_a_file

#: Ground truth and answers in one JSON document are read whole; those of the largest benchmark have 60 MB.
LARGEST = 512 * 10**6
#: Byte order marks; that of UTF-32 begins like that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def plain_file(path: Path) -> Path:
    """The path itself, for libraries that open it. Raises UnsafeFileError for what is no plain file, else OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(path, found)
    return path


def real_path(path: Path) -> Path:
    """Return the place that a path leads to, every link followed; a link that leads to itself leads to itself, which no
    file is.
    """
    return Path(os.path.realpath(path))


def stored_file(folder: Path, name: str) -> Path:
    """Return the file of this name, or the only one whose name is the same in NFC: macOS writes names otherwise."""
    path = folder / name
    if name.isascii() or path.exists():
        return path
    place = folder
    for part in name.split("/"):
        alike = [] if (place / part).exists() else _entries(place).get(same_form(part), [])
        place /= alike[0] if len(alike) == 1 else part
    return place


def _entries(folder: Path) -> Mapping[str, list[str]]:
    try:
        return _entries_of_version(folder, folder.stat().st_mtime_ns)
    except OSError:
        return {}


@functools.lru_cache(maxsize=8)
def _entries_of_version(folder: Path, modified: int) -> Mapping[str, list[str]]:
    entries: dict[str, list[str]] = {}
    for entry in folder.iterdir():
        entries.setdefault(same_form(entry.name), []).append(entry.name)
    return entries


def is_inside(path: Path, folder: Path) -> bool:
    """True if a path stays in the folder when every link is followed; one that no system could have does not."""
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
            f"{path}: larger than {limit // 10**6:,} MB, which is the most for a file that is read whole",
            hint="check that it is the right file",
        )
    return data


def decode_text(data: bytes) -> str:
    """Decode a text by its byte order mark, which is not part of the text, else as UTF-16 or UTF-8.

    Raises UnicodeDecodeError.

    >>> decode_text(b"\\xef\\xbb\\xbfTotal"), decode_text("Total".encode("utf-16-le")), decode_text(b"Total")
    ('Total', 'Total', 'Total')
    """
    mark, encoding = encoding_of(data)
    return data.removeprefix(mark).decode(encoding)


def encoding_of(data: bytes) -> tuple[bytes, str]:
    """Return the byte order mark of a text and its encoding. Without a mark, NULs at every other place mean UTF-16.

    They are the upper halves of Latin letters, digits and spaces, which other scripts have, too. UTF-8 may have some
    strays, but hardly eight that are all at such places.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    if mark or b"\0" not in data or len(data) % 2:
        return mark, _MARKS.get(mark, "utf-8")
    first, second = data[::2].count(0), data[1::2].count(0)
    few, many = sorted((first, second))
    letters = len(data) // 2
    if few <= many // 10 and many > letters // (2 if many < 4 else 4 if many < 8 else 20):
        return b"", "utf-16-be" if first > second else "utf-16-le"
    return b"", "utf-8"


def data_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes, end included, of each line that is not blank. Raises as `read_data` does.

    A byte order mark is left out. Raises UnsafeFileError if the first line is UTF-16 or UTF-32.
    """
    with open_data(path) as file:
        for number, line in enumerate(bounded_lines(file, path), 1):
            if number == 1:
                line = _without_mark(line, path)
            if line.strip():
                yield number, line


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of `data_lines` as text, for `csv.DictReader`. Raises UnsafeFileError if one is not UTF-8."""
    for number, line in data_lines(path):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise UnsafeFileError(f"{path}:{number}: not UTF-8") from None


def _without_mark(line: bytes, path: Path) -> bytes:
    # The line of a little-endian text lacks the upper half of its end.
    mark, encoding = encoding_of(line if len(line) % 2 == 0 else line.removesuffix(b"\n"))
    if encoding != "utf-8":
        encoding = encoding.upper()
        name = encoding[:6] if mark else encoding.replace("-", "").replace("UTF", "UTF-")
        raise UnsafeFileError(
            f"{path}: {encoding}, but lines are read as UTF-8",
            hint=f"convert it: iconv -f {name} -t UTF-8 {word(path)} > NEW.jsonl",
        )
    return line.removeprefix(mark)
