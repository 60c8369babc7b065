"""Tables written as HTML, found as BeautifulSoup's `html.parser` reads them.

Protocol: docs/protocols/olmocr_bench.md#finding-tables.
Every table counts, also one inside another; the rows of inner tables are rows of the outer one too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.benchmarks.shared.table_answers.table_grid import CellText, Table, TableLimitError, TableReadError, lay_out
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

#: Elements and characters looked at on one page; tables nested thousands deep would make billions of them.
MAX_WORK = 3_000_000


def parse_html_tables(markdown: str) -> list[Table]:
    """The tables in the order of their tags. TableReadError: upstream cannot read them either; TableLimitError."""
    if "<table" not in markdown.lower():
        return []
    try:
        soup = parse_html(markdown)
    except TableTooLargeError as error:
        raise TableLimitError(str(error)) from error
    except TedsError as error:
        raise TableReadError(str(error)) from error
    reader = _Reader(soup)
    tables = [lay_out(reader.rows(table)) for table in soup.find_all("table")]
    return [table for table in tables if table is not None]


class _Reader:
    """Reads rows and cells, and counts the work that this is."""

    def __init__(self, soup: BeautifulSoup) -> None:
        from bs4.element import CData, NavigableString, Tag

        self._work = 0
        self._tag = Tag
        self._texts = (NavigableString, CData)
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
                text=self._text(cell),
                rowspan=_rowspan(cell.get("rowspan"), rows_left),
                colspan=_span(cell.get("colspan")),
                heading=in_head or cell.name == "th",
            )
            for cell in row.find_all(["th", "td"], recursive=False)
        ]

    def _text(self, cell: Tag) -> str:
        """What `get_text` gives, with `br` as a line end: no comments, scripts or styles.

        Inner cells are read once for each cell around. Upstream puts line ends into the tree, which takes the square of
        their number in time.
        """
        parts = []
        for element in cell.descendants:
            self._count(1)
            if type(element) in self._texts:
                parts.append(str(element))
                self._count(len(parts[-1]))
            elif isinstance(element, self._tag) and element.name == "br":
                parts.append("\n")
                self._count(1)
        return "".join(parts).strip()

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TableLimitError(f"tables that nest too deep: more than {MAX_WORK:,} elements to look at")


def _rowspan(value: object, rows_left: int) -> int:
    """Rows that a cell spans; `0` means all that are left of the table."""
    if isinstance(value, str) and value.strip() == "0":
        return max(1, rows_left)
    return _span(value)


def _span(value: object) -> int:
    """A declared span as Python reads it, 1 for whatever is no positive whole number."""
    try:
        return max(1, int(str(value)))
    except ValueError:
        return 1
