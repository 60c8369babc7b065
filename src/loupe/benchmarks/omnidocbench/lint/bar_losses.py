"""What the official conversion of Markdown tables loses: the answer's tables compared with the converted ones.

Protocol: docs/protocols/omnidocbench.md#bar-tables.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from loupe.benchmarks.omnidocbench.extract.bar_tables import stretches_of_bars
from loupe.benchmarks.omnidocbench.lint.visible_tables import tables_in
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.shared.table_answers.gfm_tables import cells_of_row, is_delimiter_row

_BEGIN, _END = '<td colspan="1" rowspan="1">', "</td>"


class BarLosses(NamedTuple):
    """Cells that came out of no table, lines swallowed above one, and stretches of prose that became rows."""

    cells: int = 0
    lines_above: int = 0
    stray: int = 0


def bar_losses(text: str, converted: Iterable[Item]) -> BarLosses:
    """`converted` are the tables that `take_bar_tables` took from `text`."""
    stretches = stretches_of_bars(text + "\n")
    if len(stretches) < 2:
        return BarLosses()
    lines = text.split("\n")
    tables = list(tables_in(lines))
    in_table = {line for table in tables for line in table}
    rows = [lines[line] for line in sorted(in_table) if not is_delimiter_row(lines[line])]
    before = Counter(cell for row in rows for cell in cells_of_row(row) if cell)
    after = Counter(cell for item in converted for cell in _cells_of(item))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    above = stray = 0
    behind = 0  # the line behind the stretch before
    for stretch in stretches:
        first, last = (bisect_right(starts, offset) - 1 for offset in (stretch.start, stretch.end - 1))
        prose = {line for line in range(max(behind, first - 1), last + 1) if line not in in_table}
        above += first - 1 in prose and bool(lines[first - 1].strip())
        above += first in prose and bool(text[starts[first] : stretch.start].strip())
        stray += any(lines[line].strip() for line in prose if line >= first)
        behind = last + 1
    return BarLosses(cells=(before - after).total(), lines_above=above, stray=stray)


def _cells_of(table: Item) -> Iterable[str]:
    for line in table.content.split("\n"):
        cell = line.strip()
        if cell.startswith(_BEGIN) and cell.endswith(_END):
            yield cell.removeprefix(_BEGIN).removesuffix(_END)
