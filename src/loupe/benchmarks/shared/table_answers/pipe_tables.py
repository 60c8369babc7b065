"""Markdown pipe tables as HTML, by the rules of opendataloader-bench.

Source: opendataloader-project/opendataloader-bench (b4b9505), src/converter_markdown_table.py;
docs/protocols/dp_bench.md#opendataloader. Leading pipes are not needed; a row is any line that holds a pipe.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from loupe.benchmarks.shared.table_answers.spans import Span

_DASHES = re.compile(r"[-:]+")
_MAX_CELLS = 200_000


class PipeTable(NamedTuple):
    """A table's place in the text, its HTML, and the line end after its header."""

    span: Span
    html: str
    line_end: str


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    line_end: str


def convert_pipe_tables(text: str) -> str:
    """The text with every pipe table written as HTML on one line."""
    parts = []
    position = 0
    for table in pipe_tables(text):
        parts += [text[position : table.span.start], table.html, table.line_end]
        position = table.span.end
    return "".join([*parts, text[position:]])


def pipe_tables(text: str) -> Iterator[PipeTable]:
    """Every pipe table: a row, a separator row, and all rows that follow directly."""
    lines = list(_lines(text)) if "|" in text else []
    place = 0
    while place + 1 < len(lines):
        header, separator = _cells(lines[place].text), _cells(lines[place + 1].text)
        if not header or not separator or not all(_DASHES.fullmatch(cell.replace(" ", "")) for cell in separator):
            place += 1
            continue
        first = place
        place += 2
        body = []
        while place < len(lines) and (row := _cells(lines[place].text)) is not None:
            body.append(row)
            place += 1
        span = Span(lines[first].start, lines[place - 1].end)
        yield PipeTable(span, _html(header, body, width=max(len(header), len(separator))), lines[first].line_end)


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        yield _Line(start, start + len(line), body, line[len(body) :])
        start += len(line)


def _cells(line: str) -> list[str] | None:
    """The cells of a row, stripped; None for a line that is no row."""
    if "|" not in line:
        return None
    bare = line.strip()
    cells = bare.split("|")
    if bare.startswith("|"):
        del cells[0]
    if bare.endswith("|"):
        del cells[-1:]
    return [cell.strip() for cell in cells]


def _html(header: list[str], body: list[list[str]], *, width: int) -> str:
    if width * (len(body) + 1) > _MAX_CELLS:
        body = body[: _MAX_CELLS // width]
    rows = [fit_row(row, width) for row in body]
    head = fit_row(header, width)
    if not any(head) and rows:
        head = rows.pop(0)
    return f"<table>{_row(head, 'th')}{''.join(_row(row, 'td') for row in rows)}</table>"


def fit_row(cells: list[str], width: int) -> list[str]:
    """A row as wide as the table: filled with empty cells, or cut.

    Kept for parity: of exactly three cells the middle one is repeated.
    """
    if len(cells) == 3 < width:
        return [cells[0], *[cells[1]] * (width - 2), cells[2]]
    return [*cells, *[""] * (width - len(cells))][:width]


def _row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
