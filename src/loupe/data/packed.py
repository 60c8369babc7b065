"""Images inside data files: members of a zip, and image columns of a parquet file, read without unpacking.

Layouts as the hub publishes them: a parquet image column holds `{bytes, path}` structs (the Image feature), or raw
bytes. Parquet is compressed by row groups, so the last ones are kept: samples in file order cost one read per group.
"""

from __future__ import annotations

import base64
import bisect
import itertools
import os
import re
import threading
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loupe.data.bounded import ask
from loupe.data.parquet_reading import open_parquet
from loupe.errors import DatasetError, PageError
from loupe.files.foreign import open_data, plain_file
from loupe.types import PackedImage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

#: One image file is never larger; a member that claims more is a bomb.
MAX_IMAGE_BYTES = 512 * 1024**2
#: Rows of a parquet file that are decoded together, and what all that are kept may weigh.
_ROWS = 16
_KEPT_BYTES = 256 * 1024**2
#: Data files kept open.
_FILES_OPEN = 16

#: Where an image stands in a table.
_PLACE = re.compile(r"([0-9]{1,18})\+([0-9]{1,18})")
#: Text files of data sets are far smaller, in bytes.
_LARGEST_MEMBER = 512 << 20
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, RuntimeError, EOFError)


def read_packed(source: PackedImage) -> bytes:
    """The image file's bytes. Raises PageError if there is no such member, row or image."""
    name = packed_name(source)
    try:
        if source.path.suffix.lower() == ".tsv":
            data = _read_tsv(source)
        else:
            data = _read_zip(source) if zipfile_at(source.path) else _read_parquet(source)
    except KeyError:
        raise PageError(f"{name}: {source.path.name} has no such member") from None
    except FileNotFoundError:
        raise PageError(f"{source.path}: no such file") from None
    except DatasetError as error:
        raise PageError(error.message, hint=error.hint) from None
    except _BROKEN_ZIP as error:
        raise PageError(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
    if not data:
        raise PageError(f"{name}: the image is empty (0 bytes)")
    return data


def packed_name(source: PackedImage) -> Path:
    """How messages and reports call the image: the data file's path, continued by the member."""
    return source.path / source.member


def open_zip(path: Path) -> zipfile.ZipFile:
    """A published zip. Raises DatasetError for what is none, or a broken one."""
    try:
        return zipfile.ZipFile(plain_file(path))
    except _BROKEN_ZIP as error:
        raise DatasetError(
            f"{path}: not a zip, or a broken one ({error})", hint="check the data: loupe data verify"
        ) from None


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of a published zip; a few kilobytes can unpack to any size.

    Raises KeyError where there is none of this name, DatasetError for one that is broken or too large.
    """
    size = archive.getinfo(name).file_size
    try:
        if size <= _LARGEST_MEMBER:
            return archive.read(name)
    except MemoryError:
        pass
    except _BROKEN_ZIP as error:
        said = f"{archive.filename}: {name!r} is broken ({' '.join(str(error).split())[:200]})"
        raise DatasetError(said, hint="fetch the data set again") from None
    raise DatasetError(f"{archive.filename}: {name!r} would unpack to {size:,} bytes", hint="fetch the data set again")


def zipfile_at(path: Path) -> bool:
    """Whether the data file is a zip, by its name: content is looked at when it is opened."""
    return path.suffix.lower() == ".zip"


def _read_zip(source: PackedImage) -> bytes:
    archive = _zip(_version(source.path))
    info = archive.getinfo(source.member)
    if info.file_size > MAX_IMAGE_BYTES:
        raise PageError(f"{packed_name(source)}: {info.file_size:,} bytes are too many for an image")
    return archive.read(info)


def _read_tsv(source: PackedImage) -> bytes:
    """The image written as base64 in the bytes START+LENGTH of a table."""
    named = _PLACE.fullmatch(source.member)
    if named is None:
        raise PageError(f"{packed_name(source)}: an image in a table is named START+LENGTH")
    start, length = map(int, named.groups())
    if length > MAX_IMAGE_BYTES * 4 // 3 + 4:
        raise PageError(f"{packed_name(source)}: {length:,} bytes are too many for an image")
    with open_data(source.path) as file:
        file.seek(start)
        return base64.b64decode(file.read(length), validate=True)


def _read_parquet(source: PackedImage) -> bytes:
    number, _, column = source.member.partition("/")
    if not (number.isdecimal() and column):
        raise PageError(f"{packed_name(source)}: a member of a parquet file is named ROW/COLUMN")
    return bytes(ask(parquet_cell, source, int(number), column))


def parquet_cell(source: PackedImage, row: int, column: str) -> bytes:
    """The bytes of an image in a parquet file, read in this process. Raises PageError where there are none."""
    value = _cell(_version(source.path), row, column)
    if not isinstance(value, bytes):
        raise PageError(f"{packed_name(source)}: there are no image bytes in this row")
    return value


@dataclass(frozen=True, slots=True)
class _Version:
    """A data file as it is now, in this process: what was read of another version, or before a fork, is not used."""

    path: Path
    modified: int
    size: int
    process: int


def _version(path: Path) -> _Version:
    facts = path.stat()
    if not facts.st_size:
        raise PageError(f"{path}: the file is empty (0 bytes)")
    return _Version(path, facts.st_mtime_ns, facts.st_size, os.getpid())


@dataclass(slots=True)
class _Column:
    """A column of an open parquet file, read as far as row `next` (-1: not at all).

    `starts` are the first rows of its row groups. `kept` has values by the first row of their batch, copied: a slice
    would hold on to the memory of its whole page, which may be a row group.
    """

    file: ParquetFile
    name: str
    starts: list[int]
    batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))
    next: int = -1
    kept: OrderedDict[int, list[object]] = field(default_factory=OrderedDict)
    weight: int = 0

    def cell(self, row: int) -> object:
        """The value in `row`, kept or read."""
        held = (first for first in reversed(self.kept) if first <= row < first + len(self.kept[first]))
        first = next(held, None)
        first = self._read_to(row) if first is None else first
        self.kept.move_to_end(first)
        return self.kept[first][row - first]

    def _read_to(self, row: int) -> int:
        """Read on to the batch with `row`, from the start of its row group if that has been passed; its first row."""
        group = bisect.bisect_right(self.starts, row) - 1
        if not self.starts[group] <= self.next <= row:
            later = list(range(group, len(self.starts) - 1))
            self.batches = self.file.iter_batches(_ROWS, row_groups=later, columns=[self.name], use_threads=False)
            self.next = self.starts[group]
        while self.next <= row:
            first, values = self.next, [_image_bytes(value) for value in next(self.batches).column(0).to_pylist()]
            self.next += len(values)
            self.weight += 0 if first in self.kept else _bytes_in(values)
            self.kept[first] = values
            while self.weight > _KEPT_BYTES and len(self.kept) > 1:
                self.drop()
        return first

    def drop(self) -> None:
        """Forget what was used longest ago."""
        _, values = self.kept.popitem(last=False)
        self.weight -= _bytes_in(values)


@dataclass(slots=True)
class _Kept:
    """What stays open or in memory between two reads, oldest first. Every use holds `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    zips: OrderedDict[_Version, zipfile.ZipFile] = field(default_factory=OrderedDict)
    columns: OrderedDict[tuple[_Version, str], _Column] = field(default_factory=OrderedDict)


_KEPT = _Kept()
# A child that was forked while another thread was reading would wait for that thread for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_KEPT, "lock", threading.Lock()))


def _zip(version: _Version) -> zipfile.ZipFile:
    with _KEPT.lock:
        archive = _KEPT.zips.get(version)
        if archive is None:
            archive = _KEPT.zips[version] = zipfile.ZipFile(plain_file(version.path))
        _KEPT.zips.move_to_end(version)
        # Not closed: another thread may still be reading. The file closes with its last reader.
        while len(_KEPT.zips) > _FILES_OPEN:
            _KEPT.zips.popitem(last=False)
        return archive


def _cell(version: _Version, row: int, name: str) -> object:
    with _KEPT.lock:
        column = _column(version, name)
        import pyarrow as pa  # only now: opening says so where it is missing

        if row >= column.starts[-1]:
            raise PageError(f"{version.path}: has no row {row} (rows 0 to {column.starts[-1] - 1})")
        try:
            return column.cell(row)
        except (pa.ArrowException, OSError, StopIteration) as error:
            # What was read half must not be read on.
            del _KEPT.columns[version, name]
            raise PageError(f"{version.path}: broken parquet file ({' '.join(str(error).split())[:200]})") from None


def _column(version: _Version, name: str) -> _Column:
    known = _KEPT.columns.get((version, name))
    if known is None:
        file = open_parquet(version.path)
        if name not in file.schema_arrow.names:
            there = ", ".join(file.schema_arrow.names)
            raise PageError(f"{version.path}: has no column {name!r} (columns: {there})")
        lengths = (file.metadata.row_group(index).num_rows for index in range(file.num_row_groups))
        known = _KEPT.columns[version, name] = _Column(file, name, list(itertools.accumulate(lengths, initial=0)))
    _KEPT.columns.move_to_end((version, name))
    while len(_KEPT.columns) > _FILES_OPEN:
        _KEPT.columns.popitem(last=False)
    for other in _KEPT.columns.values():  # the shard before this one gives way to it
        while other is not known and other.kept and _weight() > _KEPT_BYTES:
            other.drop()
    return known


def _image_bytes(value: object) -> object:
    """The bytes of an image as the hub stores it, {bytes, path}; anything else as it is."""
    return value.get("bytes") if isinstance(value, dict) else value


def _bytes_in(values: list[object]) -> int:
    return sum(len(value) for value in values if isinstance(value, bytes))


def _weight() -> int:
    return sum(column.weight for column in _KEPT.columns.values())
