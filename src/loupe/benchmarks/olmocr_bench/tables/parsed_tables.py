"""The table that a table test was held against, as it was parsed, with the cell in question marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loupe.benchmarks.olmocr_bench.data.records import TableRule
from loupe.benchmarks.olmocr_bench.tables.table_cells import ReadTable
from loupe.benchmarks.olmocr_bench.text.page_text import PageText
from loupe.explanation import ParsedCell, ParsedTable

#: Larger tables are shown around the cell in question: so many rows and columns to each side.
_MOST_CELLS = 300
_ROWS, _COLUMNS = 8, 6
#: No cell is shown wider or higher than this.
_LONGEST_SPAN = 50


def parsed_table(page: PageText, rule: TableRule, figures: Mapping[str, Any]) -> ParsedTable | None:
    """The table with the most similar cell; None where there is none. Raises TableReadError."""
    tables = [*([] if rule.ignore_markdown_tables else page.markdown_tables), *page.html_tables]
    number = figures.get("table")
    if not isinstance(number, int) or not 0 <= number < len(tables):
        return None
    table = tables[number]
    place = (figures.get("row"), figures.get("col"))
    chosen = next((index for index, cell in enumerate(table.table.cells) if (cell.row, cell.col) == place), None)
    if chosen is None:
        return None
    relation = figures.get("relation")
    related = table.related(chosen, relation) if isinstance(relation, str) else set()
    shown = _shown(table, chosen, related)
    rows = _places(sorted({row for index in shown for row in _rows(table, index)}))
    columns = _places(sorted({column for index in shown for column in _columns(table, index)}))
    cells = tuple(
        ParsedCell(
            row=rows[_rows(table, index)[0]],
            column=columns[_columns(table, index)[0]],
            last_row=rows[_rows(table, index)[-1]],
            last_column=columns[_columns(table, index)[-1]],
            text=table.texts[index],
            heading=table.table.cells[index].heading,
            mark="cell" if index == chosen else "related" if index in related else "",
        )
        for index in shown
    )
    title = f"Table {number + 1} of {len(tables)}, as parsed" if len(tables) > 1 else "The table as parsed"
    return ParsedTable(title=title, cells=cells, hidden=len(table.table.cells) - len(cells))


def _shown(table: ReadTable, chosen: int, related: set[int]) -> list[int]:
    """All cells of a small table; of a large one the chosen cell, what is related to it, and what is near it."""
    cells = table.table.cells
    if len(cells) <= _MOST_CELLS:
        return list(range(len(cells)))
    here = cells[chosen]
    near = [
        index
        for index, cell in enumerate(cells)
        if here.row - _ROWS <= cell.row <= here.row + _ROWS and here.col - _COLUMNS <= cell.col <= here.col + _COLUMNS
    ]
    return sorted({chosen, *sorted(related)[:_MOST_CELLS], *near[:_MOST_CELLS]})


def _rows(table: ReadTable, index: int) -> range:
    cell = table.table.cells[index]
    return range(cell.row, min(cell.last_row, cell.row + _LONGEST_SPAN) + 1)


def _columns(table: ReadTable, index: int) -> range:
    cell = table.table.cells[index]
    return range(cell.col, min(cell.last_col, cell.col + _LONGEST_SPAN) + 1)


def _places(numbers: list[int]) -> dict[int, int]:
    """Rows or columns that are shown, without the gaps between them."""
    return {number: place for place, number in enumerate(numbers)}
