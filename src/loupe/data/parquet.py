"""Parquet files as the hub publishes data sets: one file or numbered shards per split, images inside.

Rows are streamed a few at a time without their images, which `loupe.data.packed` reads when a page is wanted. A file is
other people's: it is decoded in a process with limits (`loupe.data.parquet_reading`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loupe.data.bounded import ask
from loupe.data.parquet_reading import parquet_facts, parquet_rows
from loupe.errors import DatasetError
from loupe.types import PackedImage

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
        there, _ = ask(parquet_facts, file)
        missing = [name for name in columns if name.partition(".")[0] not in there]
        if missing:
            raise DatasetError(f"{file}: has no column {missing[0]!r}", hint=f"its columns: {', '.join(there)}")
        number = 0
        while some := ask(parquet_rows, file, list(columns), number):
            for values in some:
                yield Row(values, file, number)
                number += 1


def columns_of(path: Path | Sequence[Path]) -> list[str]:
    """The names of the top columns of the (first) file."""
    return ask(parquet_facts, _files(path)[0])[0]


def row_count(path: Path | Sequence[Path]) -> int:
    """How many rows there are, from the footers alone."""
    return sum(ask(parquet_facts, file)[1] for file in _files(path))


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
            f"{folder}: {len(gone)} of {count} parquet files missing, first {name}", hint="download it: loupe data get"
        )
    return shards


def _files(path: Path | Sequence[Path]) -> Sequence[Path]:
    if not isinstance(path, Path):
        return path
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.parquet"))
    if not found:
        raise DatasetError(f"{path}: no parquet files in this folder")
    return found
