"""Find the pages of a TIFF file in one pass over its directories, without decoding any (TIFF 6.0).

Pillow finds a page by way of all before it. Here places are kept for the files that were read last, and Pillow gets a
file that begins with the page.
"""

from __future__ import annotations

import functools
import io
import os
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from loupe.files.foreign import open_data

#: Pages of a file that are counted.
MOST_PAGES: Final = 10_000
#: Entries of a directory; a larger one is broken.
_MOST_ENTRIES: Final = 65_535
#: The tags that say what a picture of the file is (TIFF 6.0, "Baseline Field Reference"), and the bits and the value
#: of those that are not pages: a smaller version of another one, a mask.
_NEW_SUBFILE_TYPE, _SUBFILE_TYPE = 254, 255
_SMALLER_OR_MASK, _SMALLER = 0b101, 2
_SHORT, _LONG = 3, 4


class _Layout(NamedTuple):
    """The numbers of a TIFF file: how the place of its first directory, counts, entries and short values are packed."""

    first: int
    place: struct.Struct
    number: struct.Struct
    entry: struct.Struct
    short: struct.Struct
    long: struct.Struct


def pages_of(stream: BinaryIO, path: Path | None) -> array[int]:
    """Return where the directory of each page of an open TIFF file stands; smaller versions and masks are no pages.

    A last directory that is cut off is a page, too, and a broken one. `path` is None for bytes.
    """
    if path is None:
        return _found(stream)
    facts = os.fstat(stream.fileno())
    return _kept(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _kept(path: Path, *_facts: int) -> array[int]:
    with open_data(path) as stream:
        return _found(stream)


def _found(stream: BinaryIO) -> array[int]:
    stream.seek(0)
    layout = _layout(stream.read(8))
    return array("Q", _places(stream, layout) if layout else ())


def _layout(start: bytes) -> _Layout | None:
    order, version = {b"II": "<", b"MM": ">"}.get(start[:2]), start[2:4]
    if order is None or len(start) < 8:
        return None
    is_big = struct.unpack(f"{order}H", version)[0] == 43
    forms = ("Q", "Q", "HHQ8s") if is_big else ("L", "H", "HHL4s")
    return _Layout(8 if is_big else 4, *(struct.Struct(order + form) for form in (*forms, "H", "L")))


def _places(stream: BinaryIO, layout: _Layout) -> Iterator[int]:
    """The places of pages; directories that lead back to an earlier one end the file."""
    stream.seek(layout.first)
    seen: set[int] = set()
    link = stream.read(layout.place.size)
    while len(link) == layout.place.size and len(seen) < MOST_PAGES:
        (place,) = layout.place.unpack(link)
        if not place or place in seen or place >= 2**63:
            return
        seen.add(place)
        stream.seek(place)
        entries, link = _directory(stream, layout)
        if _is_page(entries, layout):
            yield place


def _directory(stream: BinaryIO, layout: _Layout) -> tuple[bytes, bytes]:
    """The entries of the directory that stands here, and the place of the next; nothing of one that is cut off."""
    start = stream.read(layout.number.size)
    count = layout.number.unpack(start)[0] if len(start) == layout.number.size else _MOST_ENTRIES + 1
    if count > _MOST_ENTRIES:
        return b"", b""
    entries = stream.read(count * layout.entry.size)
    whole = len(entries) == count * layout.entry.size
    return (entries, stream.read(layout.place.size)) if whole else (b"", b"")


def _is_page(entries: bytes, layout: _Layout) -> bool:
    values = {}
    for tag, kind, count, value in layout.entry.iter_unpack(entries):
        if tag in (_NEW_SUBFILE_TYPE, _SUBFILE_TYPE) and count == 1 and kind in (_SHORT, _LONG):
            (values[tag],) = (layout.short if kind == _SHORT else layout.long).unpack_from(value)
    return not values.get(_NEW_SUBFILE_TYPE, 0) & _SMALLER_OR_MASK and values.get(_SUBFILE_TYPE) != _SMALLER


def beginning_with(stream: BinaryIO, place: int) -> BinaryIO:
    """Return the TIFF file as it is, but its first directory is the one at `place`."""
    stream.seek(0)
    start = stream.read(16)
    layout = _layout(start)
    assert layout is not None
    end = layout.first + layout.place.size
    return _Led(stream, start[: layout.first] + layout.place.pack(place) + start[end:])  # type: ignore[return-value]


class _Led:
    """A file whose first bytes are others; all else is asked of the file itself.

    Decoders that read it by its descriptor find the old start, and get the place of the directory from Pillow.
    """

    def __init__(self, stream: BinaryIO, start: bytes) -> None:
        self._stream, self._start = stream, start
        if isinstance(stream, io.BytesIO):
            self.getvalue = lambda: start + stream.getvalue()[len(start) :]

    def read(self, size: int = -1) -> bytes:
        place = self._stream.tell()
        data = self._stream.read(size)
        return (
            (self._start[place:] + data[len(self._start) - place :])[: len(data)] if place < len(self._start) else data
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
