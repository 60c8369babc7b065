"""Parquet files, read in a process with limits: the tasks behind `loupe.data.parquet` and `loupe.data.packed`.

A file of a few kilobytes may claim any number of rows, or hold one text of a gigabyte in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loupe.errors import DatasetError, MissingToolError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

#: Rows decoded at a time; with large cells, fewer are handed on.
_BATCH = 256
#: More rows than any set of pages has; a few kilobytes can claim them all.
MOST_ROWS = 2_000_000
#: Deeper columns hold no pages: each level costs stack.
_MOST_COLUMNS, _DEEPEST = 10_000, 50


@dataclass(slots=True)
class _Reading:
    """A file that is being read: which, and the values from row `number` on."""

    key: tuple[Path, tuple[str, ...]]
    number: int
    batches: Iterator[list[dict[str, Any]]]


class _Kept:
    reading: _Reading | None = None


def parquet_facts(path: Path) -> tuple[list[str], int]:
    """Names of the top columns, and how many rows there are, from the footer alone."""
    with open_parquet(path) as parquet:
        return list(parquet.schema_arrow.names), int(parquet.metadata.num_rows)


def parquet_rows(path: Path, columns: Sequence[str], first: int) -> list[dict[str, Any]]:
    """Some rows from `first` on; none at the end. Quick where the call before ended there."""
    key = (path, tuple(columns))
    kept, _Kept.reading = _Kept.reading, None
    if kept is None or kept.key != key or kept.number != first:
        kept = _Reading(key, first, _batches(path, columns, first))
    found = next(kept.batches, [])
    kept.number += len(found)
    if found:
        _Kept.reading = kept
    return found


def _batches(path: Path, columns: Sequence[str], first: int) -> Iterator[list[dict[str, Any]]]:
    import pyarrow as pa

    with open_parquet(path) as parquet:
        passed = 0
        try:
            for batch in parquet.iter_batches(_BATCH, columns=list(columns), use_threads=False):
                left_out = min(max(0, first - passed), batch.num_rows)
                passed += batch.num_rows
                if left_out < batch.num_rows:
                    yield batch.slice(left_out).to_pylist()
        except MemoryError:
            raise  # also an exception of Arrow's
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, ValueError) as error:
            raise DatasetError(f"{path}: broken parquet file ({_one_line(error)})") from None


def open_parquet(path: Path) -> ParquetFile:
    """The file with its footer read. Raises DatasetError if it is missing or broken, MissingToolError for pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingToolError(
            f"reading {path.name} needs pyarrow, which is not installed", hint="pip install 'loupe-ocr[data]'"
        ) from None
    try:
        # A buffer makes it stream a column instead of reading all of a row group at once.
        parquet = ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        _refuse_absurd(path, parquet)
        return parquet
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
        raise DatasetError(
            f"{path}: not a parquet file, or a broken one ({_one_line(error)})", hint="loupe data verify"
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
