"""PaddleOCR-VL writes tables as OTSL tokens; here they become HTML.

Source: `convert_otsl_to_html` of PaddleX 3.7.2; docs/engines/paddleocr-vl.md. OTSL: one tag per grid position, `fcel`
with text, `ecel` empty, `lcel` belongs to its left neighbour, `ucel` to the one above, `xcel` to both, `nl` ends a row.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

_ROW_END = "<nl>"
_TAG = re.compile(r"(<(?:nl|fcel|ecel|lcel|ucel|xcel)>)")
_ACROSS, _DOWN = frozenset({"<lcel>", "<xcel>"}), frozenset({"<ucel>", "<xcel>"})
#: Grid positions of a table that is still converted; TEDS refuses tables of that size, too.
_MOST_POSITIONS = 200_000

#: One row: each tag and the text behind it.
_Row = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    row: int
    column: int
    rows: int = 1
    columns: int = 1
    text: str = ""


def paddle_tables(text: str) -> str:
    """An answer in OTSL as an HTML table; any other answer, and what makes no table, stays as it is."""
    return (otsl_to_html(text) or text) if _TAG.search(text) else text


def otsl_to_html(otsl: str) -> str:
    """The HTML table of an OTSL string: rows of `td` only. Empty if there is no cell, or over 200,000 positions.

    >>> otsl_to_html("<fcel>a<lcel><nl><fcel>b<fcel>c<nl>")
    '<table><tr><td colspan="2">a</td></tr><tr><td>b</td><td>c</td></tr></table>'
    """
    rows = _rows(otsl.strip())
    if not rows or len(rows) * len(rows[0]) > _MOST_POSITIONS:
        return ""
    cells = _cells(rows)
    return _html(cells, len(rows), len(rows[0])) if cells else ""


def _rows(otsl: str) -> list[_Row]:
    """The rows, all of one width: longer ones are cut, shorter ones padded with empty cells."""
    if _ROW_END not in otsl:
        row = _tags_with_text(otsl)
        # Kept from PaddleX: a single row behind other text loses the texts of all its cells.
        if row and not _TAG.match(otsl):
            row = [(tag, "") for tag, _ in row]
        return [row] if row else []
    rows = [row for line in otsl.split(_ROW_END) if (row := _tags_with_text(line))]
    if not rows:
        return []
    least = max(_last_filled(row) for row in rows)
    # The width with the fewest cells cut or added, the smaller of equal ones: the lower median, unless text is lost.
    width = max(least, median_low(len(row) for row in rows))
    if len(rows) * width > _MOST_POSITIONS:
        return []
    return [row[:width] + [("<ecel>", "")] * (width - len(row)) for row in rows]


def _tags_with_text(line: str) -> _Row:
    parts = _TAG.split(line)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _last_filled(row: _Row) -> int:
    return max((number for number, (tag, _) in enumerate(row, 1) if tag == "<fcel>"), default=0)


def _cells(rows: Sequence[_Row]) -> list[_Cell]:
    """The cells that begin somewhere, in reading order, with the positions that they cover."""
    cells = []
    for number, row in enumerate(rows):
        elements, places = _elements(row, rows[number + 1] if number + 1 < len(rows) else [])
        for column, (tag, _) in enumerate(row):
            if tag not in ("<fcel>", "<ecel>"):
                continue
            behind = places[column] + 1
            text, after = (elements[behind], behind + 1) if tag == "<fcel>" else ("", behind)
            across = _run(row, column + 1) if elements[after : after + 1] in (["<lcel>"], ["<xcel>"]) else 0
            cells.append(_Cell(number, column, 1 + _run_down(rows, number + 1, column), 1 + across, text.strip()))
    return cells


def _elements(row: _Row, following: _Row) -> tuple[list[str], list[int]]:
    """A row as PaddleX reads it, tags and texts in one list up to the first elements of the next row.

    Kept from there: white space is no element, so a filled cell without text takes the next tag for its text.
    """
    elements: list[str] = []
    places = []
    for tag, text in row:
        places.append(len(elements))
        elements += [tag, text] if text.strip() else [tag]
    elements.append(_ROW_END)
    return elements + [tag for tag, _ in following[:1]], places


def _run(row: _Row, column: int) -> int:
    """How many positions from here on belong to a cell on their left."""
    end = column
    while end < len(row) and row[end][0] in _ACROSS:
        end += 1
    return end - column


def _run_down(rows: Sequence[_Row], row: int, column: int) -> int:
    """How many positions from here on belong to a cell above them."""
    end = row
    while end < len(rows) and rows[end][column][0] in _DOWN:
        end += 1
    return end - row


def _html(cells: Sequence[_Cell], rows: int, columns: int) -> str:
    """Later cells win a position over earlier ones; one that no cell covers is empty."""
    grid: list[list[_Cell | None]] = [[None] * columns for _ in range(rows)]
    for cell in cells:
        for row in grid[cell.row : cell.row + cell.rows]:
            row[cell.column : cell.column + cell.columns] = [cell] * cell.columns
    written = ("".join(_tag(cell, place, number) for place, cell in enumerate(row)) for number, row in enumerate(grid))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in written)}</table>"


def _tag(cell: _Cell | None, column: int, row: int) -> str:
    if cell is None:
        return "<td></td>"
    if (cell.row, cell.column) != (row, column):
        return ""
    spans = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
    spans += f' colspan="{cell.columns}"' if cell.columns > 1 else ""
    return f"<td{spans}>{html.escape(cell.text)}</td>"
