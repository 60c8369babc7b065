"""Turn answers of PaddleOCR-VL into text as its pipeline does, and cut down repeated ends as HunyuanOCR does.

Tables come as OTSL tokens and become HTML.
Source: `convert_otsl_to_html` of PaddleX 3.7.2; docs/engines/paddleocr-vl.md. OTSL: one tag per grid position, `fcel`
with text, `ecel` empty, `lcel` belongs to its left neighbour, `ucel` to the one above, `xcel` to both, `nl` ends a row.

Of text, loops are cut off and formulas are set in dollars.
Source: `truncate_repetitive_content` and the pipeline of PaddleX 3.7.2; docs/engines/paddleocr-vl.md.

HunyuanOCR: what an answer repeats at its end is cut down to one copy.
Source: `clean_repeated_substrings` of Tencent-Hunyuan/HunyuanOCR, README of model 1.0 (from 8,000 characters) and
inference/utils/output_utils.py @ 4e70513 of model 1.5 (from 2,000); docs/adapters.md.
"""

from __future__ import annotations

import html
import re
from collections import Counter
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
    """Count the positions from here on that belong to a cell on their left."""
    end = column
    while end < len(row) and row[end][0] in _ACROSS:
        end += 1
    return end - column


def _run_down(rows: Sequence[_Row], row: int, column: int) -> int:
    """Count the positions from here on that belong to a cell above them."""
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


#: Answers shorter than this are left alone; tables repeat themselves honestly.
_LEAST_TEXT, _LEAST_TABLE = 50, 5000
_TABLE_MARKS = ("<fcel>", "<ecel>", "<nl>")
_TAIL_UNIT, _TAIL_TIMES, _TAIL_SHARE, _TAIL_LENGTH = 8, 5, 0.5, 100
_WHOLE_TIMES, _WHOLE_LENGTH = 10, 10
_LINES, _LINE_SHARE = 10, 0.8


def paddle_repeats(text: str) -> str:
    """Cut off what the model repeats. What is a table here shows in its tokens, as answers have no other label."""
    return truncate_repetition(text, _LEAST_TABLE if any(mark in text for mark in _TABLE_MARKS) else _LEAST_TEXT)


def paddle_math(text: str) -> str:
    r"""Formulas in `\(…\)` and `\[…\]` set in dollars. Kept from there: every dollar that stood on the page goes."""
    if not any(left in text and right in text for left, right in (("\\(", "\\)"), ("\\[", "\\]"))):
        return text
    text = text.replace("$", "").replace("\\(", " $ ").replace("\\)", " $")
    text = text.replace("\\[\\[", "\\[").replace("\\]\\]", "\\]")
    return text.replace("\\[", " $$ ").replace("\\]", " $$ ")


def truncate_repetition(text: str, least: int) -> str:
    """`text` without its loop: a single line that ends in one or is nothing else, or lines that are nearly all equal.

    Texts of fewer than `least` characters, and texts without a loop, come back unchanged.
    """
    line = text.strip()
    if len(text) < least or not line:
        return text
    if "\n" not in line:
        start = _start_of_repeated_end(line) if len(line) > _TAIL_LENGTH else None
        if start is not None:
            return line[:start]
        unit = _repeated_whole(line) if len(line) > _WHOLE_LENGTH else None
        return text if unit is None else unit
    lines = [line for raw in text.split("\n") if (line := raw.strip())]
    if len(lines) < _LINES:
        return text
    common, count = Counter(lines).most_common(1)[0]
    return common if count >= _LINES and count / len(lines) >= _LINE_SHARE else text


def _start_of_repeated_end(line: str) -> int | None:
    """Return the start of the unit that the line ends with five times, if its copies are more than half of it.

    Of all units the longest counts, whatever share of the line its copies make.
    """
    same = common_beginnings(line[::-1], len(line) // _TAIL_TIMES)
    for length in range(len(line) // _TAIL_TIMES, _TAIL_UNIT - 1, -1):
        if same[length] >= (_TAIL_TIMES - 1) * length:
            copies = (same[length] // length + 1) * length
            return len(line) - copies if copies > len(line) * _TAIL_SHARE else None
    return None


def common_beginnings(text: str, most: int) -> list[int]:
    """For each place up to `most`: how far the text from there agrees with its beginning (Z function, linear)."""
    same = [len(text)] + [0] * most
    left = right = 0
    for place in range(1, most + 1):
        length = min(right - place, same[place - left]) if place < right else 0
        if place + length >= right:
            length = max(length, 0)
            while place + length < len(text) and text[length] == text[place + length]:
                length += 1
            left, right = place, place + length
        same[place] = length
    return same


def _repeated_whole(line: str) -> str | None:
    """The shortest unit of which the line consists, if it stands there at least ten times."""
    period = (line + line).find(line, 1)
    return line[:period] if len(line) // period >= _WHOLE_TIMES else None


#: Answers shorter than this are left alone: model 1.0, model 1.5.
_LEAST, _LEAST_15 = 8000, 2000
_SHORTEST_UNIT, _TIMES = 2, 10


def hunyuan_repeats(text: str) -> str:
    """An answer of at least 8,000 characters, with one copy of a unit that its end repeats ten times or more."""
    return _with_one_copy(text, _LEAST)


def hunyuan15_repeats(text: str) -> str:
    """The same for answers of at least 2,000 characters.

    >>> len(hunyuan15_repeats("The harbour. " * 200))
    13
    """
    return _with_one_copy(text, _LEAST_15)


def _with_one_copy(text: str, least: int) -> str:
    """Of all units the shortest counts, from 2 characters to a tenth of the text."""
    if len(text) < least:
        return text
    longest = len(text) // _TIMES
    same = common_beginnings(text[::-1], longest)
    for length in range(_SHORTEST_UNIT, longest + 1):
        if same[length] >= (_TIMES - 1) * length:
            return text[: len(text) - same[length] // length * length]
    return text
