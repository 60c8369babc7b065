"""Markdown tables as a reader sees them; what the official evaluator makes of the bars is in bar_tables.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BAR = re.compile(r"(?<!\\)\|")


def tables_in(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each table: below a header with its rule all with a bar, or two lines and more between bars."""
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
            yield range(line, end)
        line = max(end, line + 1)


def is_rule(line: str) -> bool:
    """The row of hyphens under a header."""
    return "-" in line and "|" in line and not line.strip("|:- \t")


def cells_of_row(row: str) -> list[str]:
    """The texts between the bars of one line."""
    row = row.strip()
    cells = _BAR.split(row)
    cells = cells[1:] if row.startswith("|") else cells
    cells = cells[:-1] if len(cells) > 1 and not cells[-1].strip() else cells
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _is_header(line: str, below: str) -> bool:
    return "|" in line and is_rule(below) and not is_rule(line) and len(cells_of_row(line)) == len(cells_of_row(below))


def _is_boxed(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")
