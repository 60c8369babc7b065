"""Parquet files as the hub publishes data sets: one file or numbered shards per split, images inside.

Rows are streamed a few at a time without their images, which `loupe.data.packed` reads when a page is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loupe.errors import DatasetError, MissingToolError
from loupe.types import PackedImage

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

#: Rows decoded at a time.
_BATCH = 256
_SHARD = re.compile(r"-(?P<number>\d+)-of-(?P<count>\d+)\Z")


class Row(dict[str, Any]):
    """The asked columns of one row, and where it stands: `number` counts from 0 over the whole file at `path`."""

    def __init__(self, values: dict[str, Any], path: Path, number: int) -> None:
        super().__init__(values)
        self.path = path
        self.number = number

    def image(self, column: str = "image") -> PackedImage:
        """A reference to the image in `column` of this row; nothing is read."""
        return PackedImage(self.path, f"{self.number}/{column}")


def rows(path: Path | Sequence[Path], columns: Sequence[str]) -> Iterator[Row]:
    """Every row with the asked columns, in file order, of one file, several shards, or a folder of shards.

    Nested columns come as dictionaries and lists; "image.path" asks for one field of such a column.
    Raises DatasetError if a file is missing, broken or has no such column.
    """
    for file in _files(path):
        parquet = open_parquet(file)
        import pyarrow as pa  # only now: opening says so where it is missing

        missing = [name for name in columns if name.partition(".")[0] not in parquet.schema_arrow.names]
        if missing:
            there = ", ".join(parquet.schema_arrow.names)
            raise DatasetError(f"{file}: has no column {missing[0]!r}", hint=f"its columns: {there}")
        number = 0
        try:
            for batch in parquet.iter_batches(_BATCH, columns=list(columns), use_threads=False):
                for values in batch.to_pylist():
                    yield Row(values, file, number)
                    number += 1
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"{file}: broken parquet file ({_one_line(error)})") from None
        finally:
            parquet.close()


def columns_of(path: Path | Sequence[Path]) -> list[str]:
    """The names of the top columns of the (first) file."""
    names: list[str] = open_parquet(_files(path)[0]).schema_arrow.names
    return names


def row_count(path: Path | Sequence[Path]) -> int:
    """How many rows there are, from the footers alone."""
    return sum(int(open_parquet(file).metadata.num_rows) for file in _files(path))


def find_shards(root: Path, *splits: str) -> list[Path]:
    """The sorted parquet files of the first of these splits that is there. Empty: none.

    They are `test.parquet`, `test-00000-of-00002.parquet` or `test/0000.parquet`, in `root`, `data` or `default`.
    Raises DatasetError where a name says `-of-00002` and one of them is missing.
    """
    for split in splits:
        for folder in (root, root / "data", root / "default"):
            found = [folder / f"{split}.parquet"] if (folder / f"{split}.parquet").is_file() else []
            found = found or sorted(folder.glob(f"{split}-*.parquet")) or sorted((folder / split).glob("*.parquet"))
            if found:
                return _whole(found)
    return []


def _whole(shards: list[Path]) -> list[Path]:
    """The shards, if none is missing: without one, every later row would stand at another place."""
    numbered = [(match, shard) for shard in shards if (match := _SHARD.search(shard.stem))]
    counts = {int(match["count"]) for match, _ in numbered}
    if not numbered:
        return shards
    count, folder = max(counts), shards[0].parent
    if len(counts) > 1 or len(numbered) < len(shards):
        names = ", ".join(shard.name for shard in shards[:4])
        raise DatasetError(f"{folder}: parquet files of several sets ({names}, …)", hint="leave one set there")
    gone = sorted(set(range(count)) - {int(match["number"]) for match, _ in numbered})
    if gone:
        name = f"{numbered[0][0].string[: numbered[0][0].start()]}-{gone[0]:05d}-of-{count:05d}.parquet"
        raise DatasetError(
            f"{folder}: {len(gone)} of {count} parquet files missing, first {name}", hint="loupe data get"
        )
    return shards


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
        return ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(
            f"{path}: not a parquet file, or a broken one ({_one_line(error)})", hint="loupe data verify"
        ) from None


def _files(path: Path | Sequence[Path]) -> Sequence[Path]:
    if not isinstance(path, Path):
        return path
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.parquet"))
    if not found:
        raise DatasetError(f"{path}: no parquet files in this folder")
    return found


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
