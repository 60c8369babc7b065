"""Tables as a graph of cells: where each stands, and which others are next to it.

Protocol: docs/protocols/olmocr_bench.md#grid and #table-neighbours; omni_parse_bench has rewritten it.
Only what is occupied is stored, so that ragged tables and huge spans cost no more than their cells; the neighbours are
those of the official grid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Axis: TypeAlias = Literal["up", "left"]
Direction: TypeAlias = Literal["up", "down", "left", "right"]

#: Occupied places of one table; upstream has no limit, and needs minutes and gigabytes before this one.
MAX_PLACES = 1_000_000


class TableReadError(Exception):
    """A table on which the official evaluator raises."""


class TableLimitError(Exception):
    """A table that upstream may read, and that is too large for us: a limit of ours."""


@dataclass(frozen=True, slots=True)
class CellText:
    """A cell as it was written: text, declared spans, and whether it is a heading."""

    text: str
    rowspan: int = 1
    colspan: int = 1
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell in its place; `last_row` and `last_col` are inclusive and follow the declared spans."""

    row: int
    col: int
    last_row: int
    last_col: int
    text: str
    heading: bool


#: One line of the grid: places in ascending order, and the index of the cell at each of them.
Line: TypeAlias = tuple[list[int], list[int]]


class Table:
    """Cells in the order in which they were laid out, and their neighbours by index."""

    def __init__(self, cells: Sequence[Cell], rows: Sequence[Line]) -> None:
        self.cells = cells
        self._rows = rows
        self._columns: dict[int, Line] = defaultdict(lambda: ([], []))
        for number, (places, owners) in enumerate(rows):
            for col, owner in zip(places, owners, strict=True):
                places_of_column, owners_of_column = self._columns[col]
                places_of_column.append(number)
                owners_of_column.append(owner)

    @property
    def is_rectangular(self) -> bool:
        """True if every place of the grid is occupied; scoring does not ask."""
        return all(len(places) == len(self._columns) == max(self._columns) + 1 for places, _ in self._rows)

    @property
    def height(self) -> int:
        """Rows; of equal ones below the last row written, only one."""
        return len(self._rows)

    @cached_property
    def width(self) -> int:
        """Columns, up to the last one with a cell."""
        return max(self._columns) + 1

    def at(self, row: int, col: int) -> int | None:
        """The cell that covers a place."""
        places, owners = self._rows[row]
        position = bisect_left(places, col)
        return owners[position] if position < len(places) and places[position] == col else None

    def owners(self, row: int) -> Sequence[int]:
        """The cells that cover the places of a row, from left to right."""
        return self._rows[row][1]

    @cached_property
    def covered(self) -> list[tuple[list[int], list[int]]]:
        """Of each cell the rows and the columns that it covers, which may be fewer than it declares."""
        found: list[tuple[dict[int, None], dict[int, None]]] = [({}, {}) for _ in self.cells]
        for row, (places, owners) in enumerate(self._rows):
            for col, owner in zip(places, owners, strict=True):
                found[owner][0][row] = found[owner][1][col] = None
        return [(sorted(rows), sorted(columns)) for rows, columns in found]

    def neighbours(self, index: int, direction: Direction) -> set[int]:
        """The nearest other cells, over all rows or columns that the cell spans; empty places are passed over."""
        cell = self.cells[index]
        if direction in ("left", "right"):
            lines = (self._rows[row] for row in range(cell.row, cell.last_row + 1))
            first, last = cell.col, cell.last_col
        else:
            lines = (self._columns[col] for col in range(cell.col, cell.last_col + 1))
            first, last = cell.row, cell.last_row
        forward = direction in ("right", "down")
        found = (_after(line, last, index) if forward else _before(line, first, index) for line in lines)
        return {neighbour for neighbour in found if neighbour is not None}

    def headings(self, index: int, axis: Axis) -> set[int]:
        """All heading cells that are reached by going `axis` again and again, else all cells where this ends."""
        headings, ends, seen, waiting = set(), set(), {index}, [index]
        while waiting:
            current = waiting.pop()
            further = self.neighbours(current, axis)
            if self.cells[current].heading:
                headings.add(current)
            if not further:
                ends.add(current)
            waiting += further - seen
            seen |= further
        return (headings - {index}) or (ends - {index})


def _after(line: Line, place: int, own: int) -> int | None:
    places, owners = line
    for position in range(bisect_right(places, place), len(places)):
        if owners[position] != own:
            return owners[position]
    return None


def _before(line: Line, place: int, own: int) -> int | None:
    places, owners = line
    for position in range(bisect_left(places, place) - 1, -1, -1):
        if owners[position] != own:
            return owners[position]
    return None


def lay_out(rows: Sequence[Sequence[CellText]]) -> Table | None:
    """Put cells in their places, row by row; None without any cell.

    Raises TableLimitError for more than MAX_PLACES places, TableReadError in `check_rows_like_official`.
    """
    layout = _Layout()
    for number, row in enumerate(rows):
        layout.add(number, row)
    if not layout.cells:
        return None
    return layout.finish(len(rows))


@dataclass(slots=True)
class _Spanning:
    """A cell that reaches into the rows below, in one column."""

    owner: int
    rows_left: int


class _Layout:
    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.rows: list[Line] = []
        self._pending: dict[int, _Spanning] = {}
        self._places = 0

    def add(self, number: int, texts: Sequence[CellText]) -> None:
        places: list[int] = []
        owners: list[int] = []
        col = 0
        for text in texts:
            while col in self._pending:
                self._continue(col, places, owners)
                col += 1
            self._reserve(text.colspan)
            self.cells.append(_placed(text, number, col))
            for covered in range(col, col + text.colspan):
                self._cover_like_official(covered, text.rowspan)
                places.append(covered)
                owners.append(len(self.cells) - 1)
            col += text.colspan
        for rest in sorted(place for place in self._pending if place >= col):
            self._continue(rest, places, owners)
        self.rows.append((places, owners))

    def _cover_like_official(self, col: int, rowspan: int) -> None:
        """A wide cell overwrites what reaches down from above in the later columns it covers.

        Protocol: docs/protocols/olmocr_bench.md#grid.
        """
        self._pending.pop(col, None)
        if rowspan > 1:
            self._pending[col] = _Spanning(len(self.cells) - 1, rowspan - 1)

    def _continue(self, col: int, places: list[int], owners: list[int]) -> None:
        self._reserve(1)
        spanning = self._pending[col]
        places.append(col)
        owners.append(spanning.owner)
        spanning.rows_left -= 1
        if not spanning.rows_left:
            del self._pending[col]

    def _reserve(self, places: int) -> None:
        self._places += places
        if self._places > MAX_PLACES:
            raise TableLimitError(f"a table of more than {MAX_PLACES:,} places")

    def finish(self, height: int) -> Table:
        """Add the rows into which spans reach beyond the last one; of equal rows, which change nothing, only one."""
        deepest = max((spanning.rows_left for spanning in self._pending.values()), default=0)
        check_rows_like_official(self.cells, height + deepest)
        reached = {spanning.rows_left for spanning in self._pending.values()}
        reached |= {cell.last_row - height + 1 for cell in self.cells if cell.last_row >= height}
        depths = sorted(reached)
        for depth in depths:
            below = sorted(col for col, spanning in self._pending.items() if spanning.rows_left >= depth)
            self._reserve(len(below))
            self.rows.append((below, [self._pending[col].owner for col in below]))
        row_of = {height - 1 + depth: height + position for position, depth in enumerate(depths)}
        cells = [
            Cell(cell.row, cell.col, row_of[cell.last_row], cell.last_col, cell.text, cell.heading)
            if cell.last_row >= height
            else cell
            for cell in self.cells
        ]
        return Table(cells, self.rows)


def _placed(text: CellText, row: int, col: int) -> Cell:
    return Cell(row, col, row + text.rowspan - 1, col + text.colspan - 1, text.text, text.heading)


def check_rows_like_official(cells: Sequence[Cell], height: int) -> None:
    """Upstream raises an IndexError where an overwritten span was declared deeper than the table is."""
    if any(cell.last_row >= height for cell in cells):
        raise TableReadError("IndexError: a rowspan that was overwritten reaches below the table")
