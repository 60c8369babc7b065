"""The table that a test of tables was held against, as it was parsed, with the cell in question marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loupe.benchmarks.shared.table_answers.table_grid import Cell, Table
from loupe.explanation import ParsedCell, ParsedTable

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
