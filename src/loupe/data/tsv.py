"""Tables of VLMEvalKit: tab-separated text with a line of names, and images as base64 in the column `image`.

Rows are streamed without their images: `loupe.data.packed` reads these from their place in the file. A cell may be
quoted, and then hold line ends; a row is never longer than a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loupe.errors import DatasetError
from loupe.files.foreign import open_data
from loupe.files.json_lines import bounded_lines
from loupe.types import PackedImage

#: A shorter image is no image, but the index of a row with the same one.
_SHORTEST_IMAGE = 64
_LARGEST_ROW = 256 << 20


class TsvRow(dict[str, str]):
    """The cells of one row but for its image, by column; `number` counts from 0."""

    def __init__(self, values: dict[str, str], path: Path, number: int, image: tuple[int, int]) -> None:
        super().__init__(values)
        self.path = path
        self.number = number
        self._image = image

    def image(self) -> PackedImage:
        """A reference to the image of this row; nothing is read."""
        return PackedImage(self.path, "{}+{}".format(*self._image))


def tsv_rows(path: Path, columns: tuple[str, ...]) -> Iterator[TsvRow]:
    """Every row in file order. Raises DatasetError if the file is broken or lacks `image` or one of the columns."""
    names: list[str] = []
    images: dict[str, tuple[int, int]] = {}
    for number, (offset, record) in enumerate(_records(path), -1):
        try:
            spans = _cells(record)
        except ValueError:
            raise DatasetError(f"{path}, row {number}: a quote in a cell does not end") from None
        if number < 0:
            names = [_text(path, record, span).removeprefix("\ufeff") for span in spans]
            missing = [name for name in ("image", *columns) if name not in names]
            if missing:
                raise DatasetError(
                    f"{path}: has no column {missing[0]!r}", hint=f"its columns: {', '.join(names)[:200]}"
                )
            continue
        if len(spans) != len(names):
            raise DatasetError(f"{path}, row {number}: {len(spans)} cells, where the first line names {len(names)}")
        places = dict(zip(names, spans, strict=True))
        start, end = places.pop("image")
        values = {name: _text(path, record, span) for name, span in places.items()}
        place = (offset + start, end - start)
        if end - start < _SHORTEST_IMAGE:
            place = images.get(record[start:end].decode("ascii", "replace"), place)
        images[values.get("index", "")] = place
        yield TsvRow(values, path, number, place)


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield where each row begins, and its bytes without the line end; an open quote goes on in the next line."""
    try:
        file = open_data(path)
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
    offset, started, lines, quotes, size = 0, 0, [], 0, 0
    with file:
        for line in bounded_lines(file, path):
            lines.append(line)
            quotes += line.count(b'"')
            size += len(line)
            offset += len(line)
            if size > _LARGEST_ROW:
                raise DatasetError(f"{path}: a quote at byte {started:,} or behind it does not end")
            if quotes % 2 == 0:
                yield started, b"".join(lines).removesuffix(b"\n").removesuffix(b"\r")
                started, lines, quotes, size = offset, [], 0, 0
    if lines:
        raise DatasetError(f"{path}: a quote at byte {started:,} or behind it does not end")


def _cells(record: bytes) -> list[tuple[int, int]]:
    """Return where the cells of a row begin and end, without their quotes. Raises ValueError for an open quote."""
    spans, place = [], 0
    while True:
        if record.startswith(b'"', place):
            start = end = place + 1
            while record.startswith(b'""', end := record.index(b'"', end)):
                end += 2
            spans.append((start, end))
            place = end + 1
        else:
            end = record.find(b"\t", place)
            spans.append((place, len(record) if end < 0 else end))
            place = spans[-1][1]
        if not record.startswith(b"\t", place):
            return spans
        place += 1


def _text(path: Path, record: bytes, span: tuple[int, int]) -> str:
    try:
        return record[slice(*span)].decode("utf-8").replace('""', '"')
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: not UTF-8") from None
