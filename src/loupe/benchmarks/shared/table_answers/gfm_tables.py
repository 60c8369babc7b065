r"""Markdown pipe tables as GitHub reads them: the one reader of ours. Official evaluators keep theirs.

Source: GitHub Flavored Markdown 0.29, 4.10 Tables; cmark-gfm on escapes. More lenient in one point: a delimiter row may
have another number of cells than the header. A table ends before a line without a pipe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BAR = re.compile(r"\\.|(\|)", re.DOTALL)
_DELIMITER = re.compile(r":?-++:?")


def cells_of_row(line: str) -> list[str]:
    r"""The texts between the pipes of a line. A pipe with a backslash before it is a character, in code as elsewhere.

    >>> cells_of_row(r"| a \| b | `c \| d` |"), cells_of_row("a | b")
    (['a | b', '`c | d`'], ['a', 'b'])
    """
    row = line.strip().removeprefix("|")
    bars = [bar.start() for bar in _BAR.finditer(row) if bar[1]]
    cells = [row[start + 1 : end].strip() for start, end in zip([-1, *bars], [*bars, len(row)], strict=True)]
    if bars and not cells[-1]:
        del cells[-1]
    return [cell.replace(r"\|", "|") for cell in cells]


def is_delimiter_row(line: str) -> bool:
    """Return whether a line is the row of hyphens below a header, with colons or without."""
    return "-" in line and all(map(_DELIMITER.fullmatch, cells_of_row(line)))


def pipe_tables_in(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each table: a header, its delimiter row, and all lines with a pipe that follow."""
    place = 0
    while place + 1 < len(lines):
        # The cheap questions come first: most lines are no part of a table.
        if "|" not in lines[place] or not is_delimiter_row(lines[place + 1]) or is_delimiter_row(lines[place]):
            place += 1
            continue
        end = place + 2
        while end < len(lines) and "|" in lines[end]:
            end += 1
        yield range(place, end)
        place = end


def width_of_table(lines: Sequence[str]) -> int:
    """Return the number of columns: the cells of the header or of the row of hyphens, whichever has more."""
    return max(len(cells_of_row(line)) for line in lines[:2])


def rows_of_table(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the header and the rows below it. Short rows get empty cells, long ones are cut to the table's width.

    A few characters may thereby ask for many cells: take no more rows than are wanted.
    """
    width = width_of_table(lines)
    for row in map(cells_of_row, (lines[0], *lines[2:])):
        yield [*row, *[""] * (width - len(row))][:width]
