"""Read the tables of a page: cells in every compared form, with the headings, labels and section around each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from rapidfuzz import fuzz

from loupe.benchmarks.omni_parse_bench.folding import fold_short
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.view import view_text
from loupe.benchmarks.shared.table_answers.html_grids import Count, parse_tables
from loupe.benchmarks.shared.table_answers.table_grid import Axis, Direction, Table, TableLimitError, TableReadError

if TYPE_CHECKING:
    from bs4 import Tag


#: Longer spans are read as this.
LONGEST_SPAN = 1_000
#: However many differences a test allows, cells must be as similar as this.
_LEAST = 0.5
#: What rapidfuzz may cut off below a threshold in percent.
_MARGIN = 1e-6
#: To write an element takes as long as to look at so many.
_WORK_OF_ELEMENT = 10
_LINE_END = re.compile(r"<br\b[^<>]*>")


def page_tables(source: str) -> list[PageTable]:
    """All tables with cells. Raises GradingError as the official program does, TableLimitError for too large ones."""
    # Only a marked section makes the parser give up.
    read_all = "<![" in source
    try:
        tables = parse_tables(source, _cell_text, longest_span=LONGEST_SPAN, read_all=read_all)
        return [PageTable(table) for table in tables]
    except TableReadError as error:
        raise GradingError(str(error)) from error


def _cell_text(cell: Tag, count: Count) -> str:
    for element in cell.descendants:
        count(len(element) if isinstance(element, str) else _WORK_OF_ELEMENT)
    return view_text(_LINE_END.sub("\n", cell.decode_contents())).strip()


class PageTable:
    """One table; cells by index."""

    def __init__(self, table: Table) -> None:
        self.grid = table
        self.texts = [cell.text for cell in table.cells]

    @cached_property
    def _forms(self) -> list[tuple[str, ...]]:
        return [forms_of(text) for text in self.texts]

    @cached_property
    def _by_form(self) -> dict[str, list[int]]:
        """The cells by what they, or a line of theirs, are as a whole, with blanks and without."""
        found: dict[str, list[int]] = {}
        for index, forms in enumerate(self._forms):
            for form in {each for written in forms for each in (written, written.replace(" ", ""))}:
                found.setdefault(form, []).append(index)
        return found

    def like(self, wanted: str, max_diffs: int) -> list[int]:
        """The cells that are the folded text wanted, or of which a line is, in their order."""
        least = threshold(wanted, max_diffs)
        if least == 1.0:
            same = {*self._by_form.get(wanted, ()), *self._by_form.get(wanted.replace(" ", ""), ())}
            return sorted(index for index in same if is_one_of(wanted, self._forms[index], least))
        return [index for index, forms in enumerate(self._forms) if is_one_of(wanted, forms, least)]

    def is_empty(self, index: int | None) -> bool:
        """True if there is no cell, or one without text."""
        return index is None or not self.texts[index]


def forms_of(text: str) -> tuple[str, ...]:
    """A text and its lines, folded."""
    written = dict.fromkeys((text, *text.split("\n")))
    return tuple(dict.fromkeys(fold_short(each) for each in written if each.strip()))


def threshold(wanted: str, max_diffs: int) -> float:
    """The similarity that is enough for a folded text."""
    return max(_LEAST, 1.0 - max_diffs / max(1, len(wanted)))


def similarity(wanted: str, found: str, *, least: float = 0.0) -> float:
    """Compute the similarity of two folded texts, with blanks or without, whichever is more; 0 below `least`."""
    cut = max(0.0, least * 100.0 - _MARGIN)
    ratio = fuzz.ratio(wanted, found, score_cutoff=cut)
    if " " in wanted or " " in found:
        ratio = max(ratio, fuzz.ratio(wanted.replace(" ", ""), found.replace(" ", ""), score_cutoff=cut))
    return ratio / 100.0


def is_one_of(wanted: str, forms: tuple[str, ...], least: float) -> bool:
    """True if one of a cell's forms is similar enough."""
    return any(similarity(wanted, form, least=least) >= least for form in forms)


#: Places looked at for all tests of one table; tables of pages need some thousands.
MOST_LOOKS = 2_000_000


@dataclass(frozen=True, slots=True)
class _Row:
    """The role of a row for those below it: the label of a section, blank, or data."""

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
        """True if a cell covers several rows."""
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
