"""Read HTML as BeautifulSoup's `html.parser` does, and lay out its tables as grids.

No tag is added and none is moved. One rule splits tags and texts, whatever Python version runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bs4.builder import ParserRejectedMarkup
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from loupe.benchmarks.shared.table_answers.table_grid import (
    Cell,
    CellText,
    Table,
    TableLimitError,
    TableReadError,
    lay_out,
)
from loupe.data.extras import installed
from loupe.explanation import ParsedCell, ParsedTable
from loupe.metrics.html_markup import Kind, html_tokens
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


def table_tools() -> dict[str, str]:
    """The parsers that scores of tables depend on."""
    return installed("lxml", "beautifulsoup4")


#: Beyond so many tags BeautifulSoup needs minutes; TEDS would refuse such a table anyway.
MAX_TAGS = 100_000


def parse_html(source: str) -> BeautifulSoup:
    """The parsed text. Raises TedsError where the parser gives up.

    Raises TableTooLargeError for more than MAX_TAGS tags, or too many that never end.
    """
    from bs4 import BeautifulSoup
    from bs4.exceptions import ParserRejectedMarkup

    if source.count("<") > MAX_TAGS:
        raise TableTooLargeError(f"{source.count('<'):,} tags in one answer, at most {MAX_TAGS:,} are read")
    with warnings.catch_warnings():
        # It warns of text that looks like a file name or XML; answers do.
        warnings.simplefilter("ignore")
        try:
            return BeautifulSoup(source, builder=BoundedTreeBuilder())
        except (ParserRejectedMarkup, AssertionError, ValueError) as error:
            raise TedsError(f"the HTML cannot be parsed: {error}", upstream=type(error).__name__) from error


class BoundedTreeBuilder(HTMLParserTreeBuilder):
    """A `builder` for BeautifulSoup; parsing raises TableTooLargeError if it is stopped."""

    def feed(self, markup: Any, *_: Any) -> None:
        """Parse a page."""
        assert self.soup is not None
        arguments, options = self.parser_args
        parser = BeautifulSoupHTMLParser(self.soup, *arguments, **options)
        takes: dict[Kind, Callable[..., None]] = {
            "start": parser.handle_starttag,
            "empty": parser.handle_startendtag,
            "end": parser.handle_endtag,
            "text": parser.handle_data,
            "number": parser.handle_charref,
            "entity": parser.handle_entityref,
            "comment": parser.handle_comment,
            "doctype": parser.handle_decl,
            "section": parser.unknown_decl,
            "instruction": parser.handle_pi,
        }
        try:
            for kind, *found in html_tokens(markup):
                takes[kind](*found)
        except AssertionError as error:
            raise ParserRejectedMarkup(error) from error


#: Larger tables are shown around the cell in question: so many rows and columns to each side.
_MOST_CELLS = 300
_ROWS, _COLUMNS = 8, 6
#: No cell is shown wider or higher than this.
_LONGEST_SPAN = 50


def cell_at(table: Table, row: object, column: object) -> int | None:
    """The index of the cell that begins there."""
    return next((index for index, cell in enumerate(table.cells) if (cell.row, cell.col) == (row, column)), None)


def parsed_table(
    table: Table, texts: Sequence[str], *, place: tuple[int, int], chosen: int, related: Collection[int]
) -> ParsedTable:
    """The table with one cell chosen and others related to it; `place` is its number on the page, and of how many."""
    shown = _shown(table.cells, chosen, related)
    rows = _places(sorted({row for index in shown for row in _rows(table.cells[index])}))
    columns = _places(sorted({column for index in shown for column in _columns(table.cells[index])}))
    cells = tuple(
        ParsedCell(
            row=rows[_rows(cell)[0]],
            column=columns[_columns(cell)[0]],
            last_row=rows[_rows(cell)[-1]],
            last_column=columns[_columns(cell)[-1]],
            text=texts[index],
            heading=cell.heading,
            mark="cell" if index == chosen else "related" if index in related else "",
        )
        for index, cell in ((index, table.cells[index]) for index in shown)
    )
    number, total = place
    title = f"Table {number + 1} of {total}, as parsed" if total > 1 else "The table as parsed"
    return ParsedTable(title=title, cells=cells, hidden=len(table.cells) - len(cells))


def _shown(cells: Sequence[Cell], chosen: int, related: Collection[int]) -> list[int]:
    """All cells of a small table; of a large one the chosen cell, what is related to it, and what is near it."""
    if len(cells) <= _MOST_CELLS:
        return list(range(len(cells)))
    here = cells[chosen]
    near = [
        index
        for index, cell in enumerate(cells)
        if here.row - _ROWS <= cell.row <= here.row + _ROWS and here.col - _COLUMNS <= cell.col <= here.col + _COLUMNS
    ]
    return sorted({chosen, *sorted(related)[:_MOST_CELLS], *near[:_MOST_CELLS]})


def _rows(cell: Cell) -> range:
    return range(cell.row, min(cell.last_row, cell.row + _LONGEST_SPAN) + 1)


def _columns(cell: Cell) -> range:
    return range(cell.col, min(cell.last_col, cell.col + _LONGEST_SPAN) + 1)


def _places(numbers: list[int]) -> dict[int, int]:
    """Rows or columns that are shown, without the gaps between them."""
    return {number: place for place, number in enumerate(numbers)}
