"""What stands around a cell: headings above it, labels beside it, the section that it is in.

Protocol: docs/protocols/omni_parse_bench.md#around-a-cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loupe.benchmarks.omni_parse_bench.tables.page_tables import PageTable
from loupe.benchmarks.shared.table_answers.table_grid import Axis, Direction, TableLimitError

#: Places looked at for all tests of one table; tables of pages need some thousands.
MOST_LOOKS = 2_000_000


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row is to those below it: the label of a section, blank, or data."""

    kind: Literal["label", "blank", "data"]
    label: int = -1


class Surroundings:
    """Looks around the cells of one table; cells by index. Raises TableLimitError after MOST_LOOKS places."""

    def __init__(self, table: PageTable) -> None:
        self._table = table
        self._grid = table.grid
        self._looks = 0

    def headings(self, index: int, axis: Axis) -> set[int]:
        """The heading cells with text on all ways along an axis, else the cells where these end; never the cell."""
        headings, ends, seen, waiting = set(), set(), {index}, [index]
        while waiting:
            current = waiting.pop()
            self._look()
            if self._grid.cells[current].heading and not self._table.is_empty(current):
                headings.add(current)
            further = self._grid.neighbours(current, axis)
            if not further:
                ends.add(current)
            waiting += further - seen
            seen |= further
        return (headings or ends) - {index}

    def neighbours(self, index: int, direction: Direction) -> set[int]:
        """The cells next to a cell; for an empty one the first with text above it, or to the left of it."""
        axis: Axis = "up" if direction in ("left", "right") else "left"
        return {self._with_text(other, axis) for other in self._grid.neighbours(index, direction)}

    def _with_text(self, index: int, axis: Axis) -> int:
        """The first cell with text along an axis; one that has nothing beyond it, or comes again, stands for itself."""
        seen = {index}
        while self._table.is_empty(index) and (further := self._grid.neighbours(index, axis)):
            self._look()
            index = min(further)
            if index in seen:
                break
            seen.add(index)
        return index

    def above(self, index: int) -> list[int]:
        """The cells over the columns of a cell, from top to bottom.

        An empty place is the label of its section, or what stands written to the left of it.
        """
        rows, columns = self._grid.covered[index]
        found: dict[int, None] = {}
        for row in range(rows[0]):
            for column in columns:
                self._look()
                cell = self._grid.at(row, column)
                if self._table.is_empty(cell):
                    label = self._labels.get(row)
                    cell = self._first((row, left) for left in range(column - 1, -1, -1)) if label is None else label
                if cell is not None and cell != index:
                    found[cell] = None
        return list(found)

    def beside(self, index: int) -> list[int]:
        """The cells to the left in the rows of a cell, from left to right.

        An empty place is what stands written above it, up to the headings.
        """
        rows, columns = self._grid.covered[index]
        found: dict[int, None] = {}
        for column in range(columns[0]):
            for row in rows:
                self._look()
                cell = self._grid.at(row, column)
                if self._table.is_empty(cell):
                    cell = self._first(((above, column) for above in range(row - 1, -1, -1)), up_to_heading=True)
                if cell is not None:
                    found[cell] = None
        return list(found)

    def _first(self, places: Iterable[tuple[int, int]], *, up_to_heading: bool = False) -> int | None:
        """The first cell with text."""
        for row, column in places:
            self._look()
            cell = self._grid.at(row, column)
            if up_to_heading and cell is not None and self._grid.cells[cell].heading:
                return None
            if not self._table.is_empty(cell):
                return cell
        return None

    def section(self, index: int) -> list[str]:
        """The labels of the sections nearest above a cell that follow one another, from top to bottom."""
        run: list[str] = []
        for row in range(self._grid.covered[index][0][0] - 1, -1, -1):
            self._look()
            found = self._rows[row]
            if found.kind == "label":
                run.insert(0, self._table.texts[found.label])
            elif run and found.kind == "data":
                break
        return run

    def spans_rows(self, index: int) -> bool:
        """Whether a cell covers several rows."""
        return len(self._grid.covered[index][0]) > 1

    def first_of_row(self, index: int) -> int | None:
        """The first cell of the first row of a cell, if it is another one."""
        owners = self._grid.owners(self._grid.covered[index][0][0])
        return owners[0] if owners and owners[0] != index else None

    @cached_property
    def _labels(self) -> dict[int, int]:
        """By row, the one cell with text of several that begin there, where it is in the first column."""
        begun: dict[int, list[int]] = {}
        for index, cell in enumerate(self._grid.cells):
            begun.setdefault(cell.row, []).append(index)
        found = {}
        for row, cells in begun.items():
            written = [index for index in cells if not self._table.is_empty(index)]
            if len(cells) > 1 and len(written) == 1 and self._grid.cells[written[0]].col == 0:
                found[row] = written[0]
        return found

    @cached_property
    def _rows(self) -> list[_Row]:
        return [self._row(row) for row in range(self._grid.height)]

    def _row(self, row: int) -> _Row:
        owners = set(self._grid.owners(row))
        if row in self._labels:
            return _Row("label", self._labels[row])
        if len(owners) == 1 and self._grid.width > 1:
            [cell] = owners
            if self._grid.cells[cell].row == row and not self._table.is_empty(cell):
                return _Row("label", cell)
        return _Row("blank" if all(map(self._table.is_empty, owners)) else "data")

    def _look(self) -> None:
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise TableLimitError(f"a table in which more than {MOST_LOOKS:,} places would have to be looked at")
