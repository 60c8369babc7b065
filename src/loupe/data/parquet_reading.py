"""Parquet files, read in a process with limits: the tasks behind `loupe.data.parquet` and `loupe.data.packed`.

A file of a few kilobytes may claim any number of rows, or hold one text of a gigabyte in each of them.
"""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loupe.data.extras import install_hint
from loupe.errors import DatasetError, MissingToolError
from loupe.files.foreign import plain_file

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

#: Rows decoded at a time: few, as each may hold the same large text, which the file holds once.
_BATCH = 32
#: Bytes that are decoded, and handed on, at a time where a single row does not hold more.
_BATCH_BYTES = 64 << 20
#: Readings that are kept, for those who read several files, or one several times, side by side.
_READINGS = 4
#: More rows than any set of pages has; a few kilobytes can claim them all.
MOST_ROWS = 1_000_000
#: Deeper columns hold no pages: each level costs stack.
_MOST_COLUMNS, _DEEPEST = 10_000, 50


#: Files that are being read, oldest first, by which columns of which, and the number of the row that comes next.
_READINGS_KEPT: Final[OrderedDict[tuple[Path, tuple[str, ...], int], Iterator[list[dict[str, Any]]]]] = OrderedDict()


def parquet_facts(path: Path) -> tuple[list[str], int]:
    """Names of the top columns, and how many rows there are, from the footer alone."""
    with open_parquet(path) as parquet:
        return list(parquet.schema_arrow.names), int(parquet.metadata.num_rows)


def parquet_rows(path: Path, columns: Sequence[str], first: int) -> list[dict[str, Any]]:
    """Some rows from `first` on; none at the end. Quick where one of the last calls ended there."""
    # A relative path may mean another file in the next call.
    place, names = path.absolute(), tuple(columns)
    batches = _READINGS_KEPT.pop((place, names, first), None) or _batches(path, names, first)
    found = next(batches, [])
    if found:
        _READINGS_KEPT[place, names, first + len(found)] = batches
        while len(_READINGS_KEPT) > _READINGS:
            _READINGS_KEPT.popitem(last=False)
    return found


def _batches(path: Path, columns: Sequence[str], first: int) -> Iterator[list[dict[str, Any]]]:
    import pyarrow as pa

    with open_parquet(path) as parquet:
        try:
            lengths = (parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups))
            starts = list(itertools.accumulate(lengths, initial=0))
            group = bisect.bisect_right(starts, first) - 1
            passed, groups = starts[group], range(group, parquet.num_row_groups)
            count = _rows_at_once(parquet, columns, groups)
            for batch in parquet.iter_batches(count, row_groups=groups, columns=list(columns), use_threads=False):
                left_out = min(max(0, first - passed), batch.num_rows)
                passed += batch.num_rows
                # Where the file says less than it holds, or holds it unevenly.
                step = max(1, batch.num_rows * _BATCH_BYTES // max(1, batch.nbytes))
                for start in range(left_out, batch.num_rows, step):
                    yield batch.slice(start, step).to_pylist()
        except MemoryError:
            raise  # also an exception of Arrow's
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, ValueError) as error:
            raise DatasetError(f"{path}: broken parquet file ({_one_line(error)})") from None


def _rows_at_once(parquet: ParquetFile, columns: Sequence[str], groups: range) -> int:
    """Return how many of the largest group's rows weigh less than `_BATCH_BYTES`, as the footer says."""
    paths = [parquet.schema.column(index).path for index in range(parquet.metadata.num_columns)]
    wanted = [
        index for index, path in enumerate(paths) if any(f"{path}.".startswith(f"{column}.") for column in columns)
    ]
    most = 1
    for group in map(parquet.metadata.row_group, groups):
        weight = sum(max(0, group.column(index).total_uncompressed_size) for index in wanted)
        most = max(most, weight // max(1, group.num_rows))
    return max(1, min(_BATCH, _BATCH_BYTES // most))


def open_parquet(path: Path) -> ParquetFile:
    """The file with its footer read. Raises DatasetError if it is missing or broken, MissingToolError for pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingToolError(
            f"reading {path.name} needs pyarrow, which is not installed", hint=install_hint("data")
        ) from None
    try:
        # A buffer makes it stream a column instead of reading all of a row group at once.
        parquet = ParquetFile(plain_file(path), buffer_size=1 << 20, pre_buffer=False)
        _refuse_absurd(path, parquet)
        return parquet
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
        raise DatasetError(
            f"{path}: not a parquet file, or a broken one ({_one_line(error)})",
            hint="check the data: loupe data verify",
        ) from None


def _refuse_absurd(path: Path, parquet: ParquetFile) -> None:
    """Raise DatasetError for what no set of pages has; the footer says it, so it takes no time."""
    rows, columns = int(parquet.metadata.num_rows), int(parquet.metadata.num_columns)
    if rows > MOST_ROWS:
        raise DatasetError(f"{path}: says that it has {rows:,} rows; Loupe reads files of up to {MOST_ROWS:,}")
    if columns > _MOST_COLUMNS:
        raise DatasetError(f"{path}: has {columns:,} columns; Loupe reads files of up to {_MOST_COLUMNS:,}")
    deepest = max((parquet.schema.column(index).path.count(".") for index in range(columns)), default=0)
    if deepest > _DEEPEST:
        raise DatasetError(f"{path}: a column is nested {deepest} levels deep; Loupe reads up to {_DEEPEST}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
