"""Tables that are wider than the terminal become several, each with the first column again: no column is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loupe.report.terminal import Section

#: Columns whose cells are paths that people copy: they are never broken, even where the table gets too wide.
_UNBROKEN = frozenset({"run"})
#: Between two columns, and at both ends of a line.
_GAP, _ENDS = 3, 2
#: Words that are longer may be folded.
_LONGEST_WORD = 24


def fitted(sections: Iterable[Section], width: int) -> Iterator[Section]:
    """The sections, those with a header cut between columns where folding texts is not enough for this width."""
    for section in sections:
        blocks = list(_blocks(_least_widths(section), width)) if section.header else []
        if len(blocks) < 2:
            yield section
            continue
        for number, columns in enumerate(blocks):
            yield replace(
                section,
                title="" if number else section.title,
                header=[section.header[column] for column in columns],
                rows=[[row[column] for column in columns] for row in section.rows],
            )


def column_widths(section: Section, width: int) -> list[int]:
    """Every column as wide as its widest cell, or where a line is too short for that, the first ones wider than they
    need to be at least.
    """
    from rich.cells import cell_len

    found = _least_widths(section)
    spare = width - _ENDS - _GAP * (len(found) - 1) - sum(found)
    for column, name in enumerate(section.header):
        wanted = max(map(cell_len, [name, *(row[column] for row in section.rows)]))
        more = max(0, min(wanted - found[column], spare))
        found[column] += more
        spare -= more
    return found


def _least_widths(section: Section) -> list[int]:
    """How narrow each column below a header can get: numbers and paths stay whole, texts fold between words."""
    from rich.cells import cell_len

    found = []
    for column, name in enumerate(section.header):
        cells = [row[column] for row in section.rows]
        whole = name in _UNBROKEN or (column > 0 and is_of_numbers(cells))
        words = [word for text in ([name] if whole else [name, *cells]) for word in text.split()]
        folded = max((min(cell_len(word), _LONGEST_WORD) for word in words), default=0)
        found.append(max([folded, *(cell_len(cell) for cell in cells if whole)]))
    return found


def is_of_numbers(cells: Iterable[str]) -> bool:
    """Whether these cells hold numbers, or nothing."""
    return all(re.match(r"[\d±+\-–−<p]|$", cell) for cell in cells)


def _blocks(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns that fit into a line together; a single one that does not stands beside the first one alone."""
    block, used = [0], widths[0] + _ENDS
    for column in range(1, len(widths)):
        if len(block) > 1 and used + _GAP + widths[column] > width:
            yield block
            block, used = [0], widths[0] + _ENDS
        block.append(column)
        used += _GAP + widths[column]
    yield block
