"""Tables in a form that the official evaluator damages or scores 0 (4.1, 7), and the HTML that mends them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loupe.benchmarks.omnidoc.html_tables import take_html_tables
from loupe.benchmarks.omnidoc.latex_table_html import latex_table_to_html
from loupe.benchmarks.omnidoc.latex_tables import take_latex_tables
from loupe.types import Edit

_BAR = re.compile(r"(?<!\\)\|")
#: A "<" that opens no tag is text, and would swallow what follows.
_LESS_THAN = re.compile(r"<(?![A-Za-z/!])")


def markdown_tables(text: str) -> list[Edit]:
    """Markdown tables: the conversion drops cells with a colon or hyphens, and the line above the table (4.1)."""
    _, rest = take_html_tables(text)
    lines = rest.split("\n")
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    separator = "\n" if "\n\n" in text.strip() else ""  # an answer without an empty line is split by its lines
    edits = []
    for first, last in _tables(lines):
        html = _html(lines[first:last])
        above = separator if first and lines[first - 1].strip() else ""
        below = separator if last < len(lines) and lines[last].strip() else ""
        edits.append(Edit(starts[first], starts[last - 1] + len(lines[last - 1]), above + html + below))
    return edits


def latex_tables(text: str) -> list[Edit]:
    """LaTeX tables, which score 0 (7). One that nobody can read stays as it is, and is still named."""
    found = []
    for item in take_latex_tables(text)[0]:
        # The official search takes the character behind a `tabular` with it.
        surplus = 0 if item.content.endswith((r"\end{tabular}", r"\end{table}")) else 1
        end = item.end - surplus
        found.append(Edit(item.start, end, latex_table_to_html(item.content) or text[item.start : end]))
    return [edit for edit, before in zip(found, [None, *found], strict=False) if not before or edit.start >= before.end]


def _tables(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first line of each table, and the line behind its last one."""
    line = 0
    while line + 1 < len(lines):
        end = line
        if _is_header(lines[line], lines[line + 1]):
            end = line + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
        else:
            while end < len(lines) and _is_boxed(lines[end]):
                end += 1
        if end - line >= 2:
            yield line, end
        line = max(end, line + 1)


def _is_header(line: str, below: str) -> bool:
    return "|" in line and _is_rule(below) and not _is_rule(line) and len(_cells(line)) == len(_cells(below))


def _is_boxed(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")


def _is_rule(line: str) -> bool:
    """The row of hyphens under a header."""
    return "-" in line and "|" in line and not line.strip("|:- \t")


def _cells(row: str) -> list[str]:
    row = row.strip()
    cells = _BAR.split(row)
    cells = cells[1:] if row.startswith("|") else cells
    cells = cells[:-1] if len(cells) > 1 and not cells[-1].strip() else cells
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _html(lines: Sequence[str]) -> str:
    rows = [_cells(line) for line in lines if not _is_rule(line)]
    return "<table>" + "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows) + "</table>"


def _cell(text: str) -> str:
    return f"<td>{_LESS_THAN.sub('&lt;', text)}</td>"
