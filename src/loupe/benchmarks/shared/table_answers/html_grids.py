"""Tables written as HTML, found as BeautifulSoup's `html.parser` reads them, and laid out as grids.

Every table counts, also one inside another; the rows of inner tables are rows of the outer one too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.benchmarks.shared.table_answers.table_grid import CellText, Table, TableLimitError, TableReadError, lay_out
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

#: Elements and characters looked at on one page; tables nested thousands deep would make billions of them.
MAX_WORK = 3_000_000

#: Counts so much work, and raises TableLimitError where there was too much.
Count: TypeAlias = Callable[[int], None]
#: The text of a cell. Inner cells are read once for each cell around, so it counts what it looks at.
ReadCell: TypeAlias = Callable[["Tag", Count], str]


def parse_tables(
    source: str, read_cell: ReadCell, *, longest_span: int | None = None, read_all: bool = False
) -> list[Table]:
    """The tables in the order of their tags; longer spans are cut. `read_all`: what has none must be readable, too.

    TableReadError: the parser of the official programs cannot read them either; TableLimitError: they are too large.
    """
    if "<table" not in source.lower() and not read_all:
        return []
    try:
        soup = parse_html(source)
    except TableTooLargeError as error:
        raise TableLimitError(str(error)) from error
    except TedsError as error:
        raise TableReadError(str(error)) from error
    reader = _Reader(soup, read_cell, longest_span)
    tables = [lay_out(reader.rows(table)) for table in soup.find_all("table")]
    return [table for table in tables if table is not None]


class _Reader:
    """Reads rows and cells, and counts the work that this is."""

    def __init__(self, soup: BeautifulSoup, read_cell: ReadCell, longest_span: int | None) -> None:
        from bs4.element import Tag

        self._work = 0
        self._tag = Tag
        self._read_cell = read_cell
        self._longest_span = longest_span
        self._in_head: set[int] = set()
        for tag in soup.find_all(True):
            # Parents come first, so this says of every tag whether there is a thead around it.
            if tag.parent is not None and (tag.parent.name == "thead" or id(tag.parent) in self._in_head):
                self._in_head.add(id(tag))

    def rows(self, table: Tag) -> list[list[CellText]]:
        found: list[Tag] = []
        for element in table.descendants:
            self._count(1)
            if isinstance(element, self._tag) and element.name == "tr":
                found.append(element)
        return [self._cells(row, len(found) - number) for number, row in enumerate(found)]

    def _cells(self, row: Tag, rows_left: int) -> list[CellText]:
        in_head = id(row) in self._in_head
        return [
            CellText(
                text=self._read_cell(cell, self._count),
                rowspan=self._rowspan(cell.get("rowspan"), rows_left),
                colspan=self._span(cell.get("colspan")),
                heading=in_head or cell.name == "th",
            )
            for cell in row.find_all(["th", "td"], recursive=False)
        ]

    def _rowspan(self, value: object, rows_left: int) -> int:
        """Rows that a cell spans; `0` means all that are left of the table."""
        if isinstance(value, str) and value.strip() == "0":
            return max(1, rows_left)
        return self._span(value)

    def _span(self, value: object) -> int:
        """A declared span as Python reads it, 1 for whatever is no positive whole number."""
        try:
            span = max(1, int(str(value)))
        except ValueError:
            return 1
        return span if self._longest_span is None else min(span, self._longest_span)

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TableLimitError(f"tables that nest too deep: more than {MAX_WORK:,} elements to look at")
