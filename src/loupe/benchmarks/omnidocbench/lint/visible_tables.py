"""Markdown tables as a reader sees them; what the official evaluator makes of the bars is in bar_tables.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loupe.benchmarks.shared.table_answers.gfm_tables import cells_of_row, is_delimiter_row


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


def _is_header(line: str, below: str) -> bool:
    if "|" not in line or not is_delimiter_row(below) or is_delimiter_row(line):
        return False
    return len(cells_of_row(line)) == len(cells_of_row(below))


def _is_boxed(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")
