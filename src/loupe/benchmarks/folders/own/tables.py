"""Tables in an answer, from HTML or Markdown, as cells at grid places.

Hostile input meets limits: 1,000 columns, 5,000 rows, 20,000 cells; what lies beyond is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from loupe.benchmarks.folders.own.html_tables import Cell, first_table
from loupe.benchmarks.shared.table_answers.gfm_tables import pipe_tables_in, rows_of_table, width_of_table

#: Text by (row, column) of a cell's upper left corner.
Grid: TypeAlias = dict[tuple[int, int], str]

MAX_CELLS = 20_000
MAX_COLUMNS = 1_000
MAX_ROWS = 5_000

#: What CommonMark takes for markup in a line of text; a "<" elsewhere is a character. A comment without an end is none,
#: and then ends the search.
_INLINE_MARKUP = re.compile(
    r"""<!--(?:.*?-->|.*)|</[A-Za-z][A-Za-z0-9-]*+\s*+>"""
    r"""|<[A-Za-z][A-Za-z0-9-]*+(?>(?:\s++[A-Za-z_:][\w.:-]*+(?>(?:\s*+=\s*+(?>"[^"]{0,2000}+"|'[^']{0,2000}+'|[^\s"'=<>`]++))?))*)"""
    r"""\s*+/?+>""",
    re.DOTALL,
)


def read_table(answer: str) -> Grid:
    """The first table of an answer (HTML before Markdown); no table: an empty grid."""
    return place(_rows(answer))


def read_rows(answer: str) -> list[list[Cell]]:
    """The rows of the first table of an answer, with the same limits; no table: no rows."""
    kept: list[list[Cell]] = []
    left = MAX_CELLS
    for row in _rows(answer)[:MAX_ROWS]:
        kept.append(row[: min(left, MAX_COLUMNS)])
        left -= len(kept[-1])
    return kept


def within_limits(rows: Sequence[Sequence[Cell]]) -> bool:
    """Whether rows are read whole."""
    return len(rows) <= MAX_ROWS and max(map(len, rows)) <= MAX_COLUMNS and sum(map(len, rows)) <= MAX_CELLS


def _rows(answer: str) -> list[list[Cell]]:
    return first_table(answer) or _pipe_rows(answer)


def place(rows: Iterable[list[Cell]]) -> Grid:
    """Put cells on the grid as HTML does: each takes the first free place of its row, spans reserve theirs."""
    grid: Grid = {}
    #: How many further rows each column is taken for.
    taken: dict[int, int] = {}
    for row, cells in enumerate(islice(rows, MAX_ROWS)):
        column = 0
        reserved: dict[int, int] = {}
        for cell in cells:
            while taken.get(column, 0) > 0:
                column += 1
            if len(grid) >= MAX_CELLS:
                return grid
            if column >= MAX_COLUMNS:
                break
            grid[row, column] = cell.text
            if cell.rowspan > 1:
                reserved |= dict.fromkeys(range(column, column + cell.colspan), cell.rowspan)
            column += cell.colspan
        taken = {column: left - 1 for column, left in taken.items() if left > 1}
        taken |= {column: left - 1 for column, left in reserved.items()}
    return grid


def _pipe_rows(answer: str) -> list[list[Cell]]:
    lines = answer.splitlines()
    table = next(pipe_tables_in(lines), range(0))
    if not table:
        return []
    written = lines[table.start : min(table.stop, table.start + MAX_ROWS + 1)]
    rows = islice(rows_of_table(written), MAX_CELLS // min(width_of_table(written), MAX_COLUMNS) + 1)
    return [[Cell(1, 1, escape_text(cell)) for cell in row[: MAX_COLUMNS + 1]] for row in rows]


def escape_text(cell: str) -> str:
    """A cell of Markdown as HTML: what is no markup in a line of Markdown is none in HTML either; comments go.

    >>> escape_text("p<0.05 <b>x</b><!-- image -->")
    'p&lt;0.05 <b>x</b>'
    """
    if "<" not in cell:
        return cell
    parts, end = [], 0
    for found in _INLINE_MARKUP.finditer(cell):
        if found[0].startswith("<!") and not found[0].endswith("-->"):
            break
        parts += [cell[end : found.start()].replace("<", "&lt;"), "" if found[0].startswith("<!") else found[0]]
        end = found.end()
    return "".join([*parts, cell[end:].replace("<", "&lt;")])
