"""Tables written with pipes: every run of two or more lines with a `|` in them.

Protocol: docs/protocols/olmocr_bench.md#finding-tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from loupe.benchmarks.shared.table_answers.table_grid import CellText, Table, lay_out

_RULE = frozenset("- :")


def parse_markdown_tables(markdown: str) -> list[Table]:
    """The pipe tables in order; pipes in prose, math or HTML make tables too. The first row and column are headings."""
    if "|" not in markdown:
        return []
    lines = markdown.strip().split("\n")
    runs = [list(run) for has_pipe, run in groupby(lines, key=lambda line: "|" in line) if has_pipe]
    tables = [_table(run) for run in runs if len(run) > 1]
    return [table for table in tables if table is not None]


def _table(lines: Sequence[str]) -> Table | None:
    return lay_out(
        [
            [CellText(text, heading=row == 0 or col == 0) for col, text in enumerate(cells)]
            for row, cells in enumerate(_rows(lines))
        ]
    )


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """The cells of every line but the rules between head and body; lines without cells are no rows."""
    separator = next((number for number, line in enumerate(lines) if _is_separator(line)), None)
    for number, line in enumerate(lines):
        if number != separator and not _is_rule(line) and (cells := split_cells_like_official(line)):
            yield cells


def _is_separator(line: str) -> bool:
    content = line.replace("|", "").strip()
    return bool(content) and _RULE.issuperset(content)


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and _RULE.issuperset(line.replace("|", ""))


def split_cells_like_official(line: str) -> list[str]:
    """Split at every pipe, escaped or not, and drop an empty first and last cell, even where no pipe stood outside."""
    cells = [cell.strip() for cell in line.split("|")]
    if cells[0] == "":
        del cells[0]
    if cells and cells[-1] == "":
        del cells[-1]
    return cells
