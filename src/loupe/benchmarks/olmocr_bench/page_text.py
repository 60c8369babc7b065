"""Prepare an answer to one page in the forms that its tests look at: text, tables, equations. Each is made once.

Protocol: docs/protocols/olmocr_bench.md#finding-tables and #equations. Every pass over an answer is linear: a
closing mark that is missing for one opening mark is missing for all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.records import normalize
from loupe.benchmarks.shared.table_answers.html_grids import Count, parse_tables
from loupe.benchmarks.shared.table_answers.table_grid import Axis, CellText, Direction, Table, TableLimitError, lay_out

if TYPE_CHECKING:
    from bs4 import Tag


class PageText:
    """The Markdown of a page; everything else is made of it when a test first asks."""

    def __init__(self, markdown: str) -> None:
        self.markdown = markdown
        self._equations: dict[bool, list[str]] = {}
        #: Why tables were not read, by kind; filled when they are asked for.
        self.table_limits: dict[str, str] = {}

    @cached_property
    def normalized(self) -> str:
        """The text as it is compared."""
        return normalize(self.markdown)

    @cached_property
    def lowered(self) -> str:
        """The same in lower case."""
        return self.normalized.lower()

    @cached_property
    def markdown_tables(self) -> list[ReadTable]:
        """Pipe tables, in order; none where they are beyond a limit of ours."""
        return self._within_limits(parse_markdown_tables, "Markdown")

    @cached_property
    def html_tables(self) -> list[ReadTable]:
        """HTML tables, in order; as above. Raises TableReadError where upstream raises in reading them."""
        return self._within_limits(parse_html_tables, "HTML")

    def _within_limits(self, parse: Callable[[str], list[Table]], kind: str) -> list[ReadTable]:
        try:
            return [ReadTable(table) for table in parse(self.markdown)]
        except TableLimitError as error:
            self.table_limits[kind] = str(error)
            return []

    def equations(self, *, ignore_dollars: bool = False) -> list[str]:
        """The texts that are delimited as math."""
        if ignore_dollars not in self._equations:
            self._equations[ignore_dollars] = extract_equations(self.markdown, ignore_dollars=ignore_dollars)
        return self._equations[ignore_dollars]


#: What a relation looks at: next to the cell, or all headings that way.
_DIRECTIONS: dict[str, Direction] = {"up": "up", "down": "down", "left": "left", "right": "right"}
_AXES: dict[str, Axis] = {"top_heading": "up", "left_heading": "left"}


#: Texts whose similarities to the cells are kept.
_REMEMBERED = 16


class ReadTable:
    """Cells by index; similarities lie in 0..1."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._further: dict[Axis, list[set[int]]] = {}
        self._headed: dict[Axis, list[bool]] = {}
        self._ratios: dict[str, dict[str, float]] = {}

    @cached_property
    def texts(self) -> list[str]:
        """The normalised text of each cell."""
        written = {cell.text for cell in self.table.cells}
        normalized = {text: normalize(text) for text in written}
        return [normalized[cell.text] for cell in self.table.cells]

    def similarities(self, text: str) -> list[float]:
        """Compute the similarity of each cell to a text; equal cells are compared once, for all tests of a page."""
        if text not in self._ratios:
            if len(self._ratios) >= _REMEMBERED:
                del self._ratios[next(iter(self._ratios))]
            self._ratios[text] = {cell: fuzz.ratio(text, cell) / 100.0 for cell in set(self.texts)}
        return [self._ratios[text][cell] for cell in self.texts]

    def related(self, index: int, relation: str) -> set[int]:
        """The cells that a relation of a cell may be satisfied by."""
        if relation in _AXES:
            return self.table.headings(index, _AXES[relation])
        return self.table.neighbours(index, _DIRECTIONS[relation])

    def satisfying(self, relation: str, similar: list[bool]) -> list[bool] | None:
        """For each cell whether some heading related to it is similar; None for relations to neighbours.

        One pass over the table instead of one walk per cell: what lies up or left of a cell begins before it does.
        """
        axis = _AXES.get(relation)
        if axis is None:
            return None
        further, headed = self._headings_of(axis)
        heading_matches, end_matches = [False] * len(similar), [False] * len(similar)
        cells = self.table.cells
        for index in self._order(axis):
            beyond = further[index]
            heading_matches[index] = (cells[index].heading and similar[index]) or any(
                heading_matches[other] for other in beyond
            )
            end_matches[index] = any(end_matches[other] for other in beyond) if beyond else similar[index]
        return [
            any((heading_matches if any(headed[other] for other in beyond) else end_matches)[other] for other in beyond)
            for beyond in further
        ]

    def _headings_of(self, axis: Axis) -> tuple[list[set[int]], list[bool]]:
        """Neighbours of every cell along an axis, and whether it is a heading or has one beyond it."""
        if axis not in self._further:
            cells = self.table.cells
            further = [self.table.neighbours(index, axis) for index in range(len(cells))]
            headed = [False] * len(cells)
            for index in self._order(axis):
                headed[index] = cells[index].heading or any(headed[other] for other in further[index])
            self._further[axis], self._headed[axis] = further, headed
        return self._further[axis], self._headed[axis]

    def _order(self, axis: Axis) -> list[int]:
        cells = self.table.cells
        return sorted(range(len(cells)), key=lambda index: cells[index].row if axis == "up" else cells[index].col)


def parse_html_tables(markdown: str) -> list[Table]:
    """The tables in the order of their tags. TableReadError: upstream cannot read them either; TableLimitError."""
    return parse_tables(markdown, _text)


def _text(cell: Tag, count: Count) -> str:
    """Return what `get_text` gives, with `br` as a line end: no comments, scripts or styles.

    Upstream puts line ends into the tree, which takes the square of their number in time.
    """
    from bs4.element import CData, NavigableString, Tag

    parts = []
    for element in cell.descendants:
        count(1)
        if type(element) in (NavigableString, CData):
            parts.append(str(element))
            count(len(parts[-1]))
        elif isinstance(element, Tag) and element.name == "br":
            parts.append("\n")
            count(1)
    return "".join(parts).strip()


_RULE = frozenset("- :")


def parse_markdown_tables(markdown: str) -> list[Table]:
    """The pipe tables in order; pipes in prose, math or HTML make tables too. The first row and column are headings."""
    if "|" not in markdown:
        return []
    lines = markdown.strip().split("\n")
    runs = [list(run) for has_pipe, run in groupby(lines, key=lambda line: "|" in line) if has_pipe]
    tables = [_table(run) for run in runs if len(run) > 1]
    return [table for table in tables if table is not None]


def _table(lines: Sequence[str]) -> Table | None:
    return lay_out(
        [
            [CellText(text, heading=row == 0 or col == 0) for col, text in enumerate(cells)]
            for row, cells in enumerate(_rows(lines))
        ]
    )


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """The cells of every line but the rules between head and body; lines without cells are no rows."""
    separator = next((number for number, line in enumerate(lines) if _is_separator(line)), None)
    for number, line in enumerate(lines):
        if number != separator and not _is_rule(line) and (cells := split_cells_like_official(line)):
            yield cells


def _is_separator(line: str) -> bool:
    content = line.replace("|", "").strip()
    return bool(content) and _RULE.issuperset(content)


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and _RULE.issuperset(line.replace("|", ""))


def split_cells_like_official(line: str) -> list[str]:
    """Split at every pipe, escaped or not, and drop an empty first and last cell, even where no pipe stood outside."""
    cells = [cell.strip() for cell in line.split("|")]
    if cells[0] == "":
        del cells[0]
    if cells and cells[-1] == "":
        del cells[-1]
    return cells


_BRACKETS = ((r"\(", r"\)"), (r"\[", r"\]"))
_DOLLARS = (("$$", "$$"), ("$", "$"))


def extract_equations(markdown: str, *, ignore_dollars: bool = False) -> list[str]:
    r"""The equations by kind of delimiter, stripped; each kind is taken out of the text before the next is looked for.

    >>> extract_equations(r"$a$, \(b\) and $$ c $$")
    ['b', 'c', 'a']
    """
    found: list[str] = []
    for opening, closing in _BRACKETS if ignore_dollars else (*_BRACKETS, *_DOLLARS):
        equations, markdown = _take_out(markdown, opening, closing)
        found += (equation.strip() for equation in equations)
    return found


def _take_out(text: str, opening: str, closing: str) -> tuple[list[str], str]:
    """Return the texts between the marks, at least one character each, and the text without marks and contents."""
    found, kept, position = [], [], 0
    while (start := text.find(opening, position)) >= 0:
        inside = start + len(opening)
        end = text.find(closing, inside + 1)
        if end < 0:
            break
        kept.append(text[position:start])
        found.append(text[inside:end])
        position = end + len(closing)
    return found, "".join(kept) + text[position:]
