"""Tables in an answer, from HTML or Markdown, as cells at grid places.

A scanner, not a browser: it reads tags of tables, keeps the text of everything else, and is linear in the length of
the answer. Hostile input meets limits: 1,000 columns, 5,000 rows, 20,000 cells; what lies beyond is left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

#: Text by (row, column) of a cell's upper left corner.
Grid: TypeAlias = dict[tuple[int, int], str]

MAX_CELLS = 20_000
MAX_COLUMNS = 1_000
MAX_ROWS = 5_000

# Possessive repeats (`*+`) and atomic groups (`(?>…)`) never go back, which keeps the search linear on hostile text. A
# quoted value may hold `>`, but no `<`: a quote that is never closed would take the tags behind it.
_TAG = re.compile(r"""<(/?)([A-Za-z][A-Za-z0-9]*+)((?>(?:[^<>=]++|=\s*+"[^"<]*+"|=\s*+'[^'<]*+'|=)*))>""")
_SPAN = re.compile(r"""\b(row|col)span\s*+=\s*+["']?+\s*+(\d{1,6})""", re.IGNORECASE)
_DASHES = re.compile(r":?-++:?")


@dataclass(slots=True)
class _Cell:
    rowspan: int
    colspan: int
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return _clean("".join(self.parts))


def read_table(answer: str) -> Grid:
    """The first table of an answer (HTML before Markdown); no table: an empty grid."""
    return place(_rows(answer))


def read_rows(answer: str) -> list[list[_Cell]]:
    """The rows of the first table of an answer, with the same limits; no table: no rows."""
    kept: list[list[_Cell]] = []
    left = MAX_CELLS
    for row in _rows(answer)[:MAX_ROWS]:
        kept.append(row[: min(left, MAX_COLUMNS)])
        left -= len(kept[-1])
    return kept


def _rows(answer: str) -> list[list[_Cell]]:
    start = re.search(r"<table\b", answer, re.IGNORECASE)
    return _html_rows(answer[start.start() :]) if start else _markdown_rows(answer)


def place(rows: Iterable[list[_Cell]]) -> Grid:
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


def _html_rows(source: str) -> list[list[_Cell]]:
    rows: list[list[_Cell]] = []
    depth = 0
    end = 0
    cell: _Cell | None = None
    for tag in _TAG.finditer(source):
        _add_text(cell, source[end : tag.start()])
        end = tag.end()
        closing, name = bool(tag[1]), tag[2].lower()
        if name == "table":
            depth += -1 if closing else 1
            if depth <= 0:
                break
        elif depth > 1:
            # A table inside a cell: its words belong to the cell.
            _add_text(cell, " ")
        elif name == "tr":
            cell = None
            if not closing:
                rows.append([])
        elif name in ("td", "th"):
            cell = None if closing else _start_cell(rows, tag[3])
        elif name in ("br", "p", "div", "li"):
            _add_text(cell, " ")
    return rows


def _start_cell(rows: list[list[_Cell]], attributes: str) -> _Cell:
    spans = {name.lower(): min(max(int(count), 1), MAX_COLUMNS) for name, count in _SPAN.findall(attributes)}
    cell = _Cell(spans.get("row", 1), spans.get("col", 1))
    if not rows:
        rows.append([])
    rows[-1].append(cell)
    return cell


def _add_text(cell: _Cell | None, text: str) -> None:
    if cell is not None:
        cell.parts.append(text)


def _clean(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _markdown_rows(source: str) -> list[list[_Cell]]:
    lines = source.splitlines()
    ruled = (i for i, line in enumerate(lines) if i and "|" in lines[i - 1] and "-" in line and _is_rule(line))
    rule = next(ruled, None)
    if rule is None:
        return []
    rows = [lines[rule - 1]]
    for line in lines[rule + 1 :]:
        if "|" not in line:
            break
        rows.append(line)
    return [[_Cell(1, 1, [text]) for text in _split_row(row)] for row in rows]


def _is_rule(line: str) -> bool:
    cells = line.strip().removeprefix("|").removesuffix("|").split("|")
    return all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def _split_row(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.replace("\\|", "|").replace("<br>", " ") for cell in re.split(r"(?<!\\)\|", inner)]
