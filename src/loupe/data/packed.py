"""Images inside data files: members of a zip, and image columns of a parquet file, read without unpacking.

Layouts as the hub publishes them: a parquet image column holds `{bytes, path}` structs (the Image feature), or raw
bytes. Parquet is compressed by row groups, so the last ones are kept: samples in file order cost one read per group.
"""

from __future__ import annotations

import bisect
import itertools
import os
import threading
import zipfile
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loupe.data.parquet import open_parquet
from loupe.errors import DatasetError, PageError
from loupe.types import PackedImage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

#: One image file is never larger; a member that claims more is a bomb.
MAX_IMAGE_BYTES = 512 * 1024**2
#: Row groups kept in memory, and what they may weigh together; the last one read always stays.
_GROUPS_KEPT = 8
_GROUP_BYTES = 384 * 1024**2
#: Data files kept open.
_FILES_OPEN = 16

_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, RuntimeError, EOFError)


def read_packed(source: PackedImage) -> bytes:
    """The image file's bytes. Raises PageError if there is no such member, row or image."""
    name = packed_name(source)
    try:
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


def zipfile_at(path: Path) -> bool:
    """Whether the data file is a zip, by its name: content is looked at when it is opened."""
    return path.suffix.lower() == ".zip"


def _read_zip(source: PackedImage) -> bytes:
    archive = _zip(_version(source.path))
    info = archive.getinfo(source.member)
    if info.file_size > MAX_IMAGE_BYTES:
        raise PageError(f"{packed_name(source)}: {info.file_size:,} bytes are too many for an image")
    return archive.read(info)


def _read_parquet(source: PackedImage) -> bytes:
    number, _, column = source.member.partition("/")
    if not (number.isdecimal() and column):
        raise PageError(f"{packed_name(source)}: a member of a parquet file is named ROW/COLUMN")
    value = _cell(_version(source.path), int(number), column)
    if isinstance(value, dict):
        value = value.get("bytes")
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
class _Parquet:
    """An open parquet file and the number of its first row in each row group."""

    file: ParquetFile
    starts: list[int]


@dataclass(slots=True)
class _Kept:
    """What stays open or in memory between two reads, oldest first. Every use holds `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    zips: OrderedDict[_Version, zipfile.ZipFile] = field(default_factory=OrderedDict)
    parquets: OrderedDict[_Version, _Parquet] = field(default_factory=OrderedDict)
    groups: OrderedDict[tuple[_Version, int, str], pa.ChunkedArray] = field(default_factory=OrderedDict)


_KEPT = _Kept()
# A child that was forked while another thread was reading would wait for that thread for ever.
os.register_at_fork(after_in_child=lambda: setattr(_KEPT, "lock", threading.Lock()))


def _zip(version: _Version) -> zipfile.ZipFile:
    with _KEPT.lock:
        archive = _KEPT.zips.get(version)
        if archive is None:
            archive = _KEPT.zips[version] = zipfile.ZipFile(version.path)
        _KEPT.zips.move_to_end(version)
        # Not closed: another thread may still be reading. The file closes with its last reader.
        while len(_KEPT.zips) > _FILES_OPEN:
            _KEPT.zips.popitem(last=False)
        return archive


def _cell(version: _Version, row: int, column: str) -> object:
    with _KEPT.lock:
        parquet = _parquet(version)
        group = bisect.bisect_right(parquet.starts, row) - 1
        if row >= parquet.starts[-1]:
            raise PageError(f"{version.path}: has no row {row} (rows 0 to {parquet.starts[-1] - 1})")
        if column not in parquet.file.schema_arrow.names:
            there = ", ".join(parquet.file.schema_arrow.names)
            raise PageError(f"{version.path}: has no column {column!r} (columns: {there})")
        values = _group(version, group, column)
        return values[row - parquet.starts[group]].as_py()


def _parquet(version: _Version) -> _Parquet:
    known = _KEPT.parquets.get(version)
    if known is None:
        file = open_parquet(version.path)
        lengths = (file.metadata.row_group(index).num_rows for index in range(file.num_row_groups))
        known = _KEPT.parquets[version] = _Parquet(file, list(itertools.accumulate(lengths, initial=0)))
    _KEPT.parquets.move_to_end(version)
    while len(_KEPT.parquets) > _FILES_OPEN:
        _KEPT.parquets.popitem(last=False)
    return known


def _group(version: _Version, group: int, column: str) -> pa.ChunkedArray:
    import pyarrow as pa

    key = (version, group, column)
    values = _KEPT.groups.get(key)
    if values is None:
        try:
            table = _KEPT.parquets[version].file.read_row_group(group, columns=[column], use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise PageError(f"{version.path}: broken parquet file ({' '.join(str(error).split())[:200]})") from None
        values = _KEPT.groups[key] = table.column(column)
    _KEPT.groups.move_to_end(key)
    while len(_KEPT.groups) > 1 and (len(_KEPT.groups) > _GROUPS_KEPT or _weight() > _GROUP_BYTES):
        _KEPT.groups.popitem(last=False)
    return values


def _weight() -> int:
    return sum(values.nbytes for values in _KEPT.groups.values())
