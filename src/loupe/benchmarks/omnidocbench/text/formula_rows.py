r"""The rows and cells of a formula of several lines, and the environments around them.

Protocol: docs/protocols/omnidocbench_v16.md#splitting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

_STARRED: Final = ("align", "alignedat", "gather", "multline", "flalign", "eqnarray")
#: Environments whose rows are lines of their own.
ENVIRONMENTS: Final = frozenset(
    ("array", "aligned", "split", "gathered", "cases", *_STARRED, *(f"{name}*" for name in _STARRED))
)
_MARK = re.compile(r"\\(?:begin|end)\{|\\\\|[{}]")
_MARK_OR_CELL = re.compile(r"\\(?:begin|end)\{|&")
_SPACING = re.compile(r"\s*\*?")
_BEGIN = re.compile(r"\\begin\{([^{}]+)\}\s*+((?>(?:\{[^{}]*\}\s*+)*))")
_LEADING_MARKERS = re.compile(r"[\s&]+")


class Mark(NamedTuple):
    """Something that structures a formula, and in how many environments."""

    sign: str
    start: int
    end: int
    depth: int


class Environment(NamedTuple):
    r"""An environment in a formula: `start` and `end` include its marks, the body stands between them.

    `groups` are the groups directly behind its name, such as the columns of an array.
    """

    name: str
    groups: str
    start: int
    body_start: int
    body_end: int
    end: int


def rows_of(formula: str, *, escapes: bool = True) -> list[str]:
    r"""The rows between the line breaks that stand in no brace and no environment; empty ones are left out.

    Without `escapes`, an escaped brace is one, too.

    >>> rows_of(r"a \\[2pt] b \\ {c \\ d}")
    ['a', 'b', '{c \\\\ d}']
    """
    if "\\\\" not in formula:
        return [row] if (row := formula.strip()) else []
    rows, start, braces = [], 0, 0
    marks = _Marks(formula, _MARK)
    for mark in marks:
        if mark.start < start:  # in the bracket of a line break
            continue
        if mark.sign == "\\\\":
            if braces == 0 and mark.depth == 0:
                rows.append(formula[start : mark.start].strip())
                start = _behind_line_break(formula, mark.end)
            else:  # the second of two backslashes may begin a mark
                marks.position = mark.start + 1
        elif not (escapes and is_escaped(formula, mark.start)):
            braces = braces + 1 if mark.sign == "{" else max(0, braces - 1)
    rows.append(formula[start:].strip())
    return [row for row in rows if row]


def cells_of(row: str) -> list[str]:
    """What stands between the `&` that stand in no environment, without blanks around it; one cell at least."""
    if "&" not in row:
        return [row.strip()]
    cells, start = [], 0
    for mark in _Marks(row, _MARK_OR_CELL):
        if mark.depth == 0 and not is_escaped(row, mark.start):
            cells.append(row[start : mark.start].strip())
            start = mark.end
    return [*cells, row[start:].strip()]


def without_leading_markers(row: str) -> str:
    """A row without the `&` that it begins with."""
    markers = _LEADING_MARKERS.match(row)
    return row[markers.end() :] if markers else row


def is_escaped(text: str, position: int) -> bool:
    """Whether an odd number of backslashes stands before."""
    start = position
    while start > 0 and text[start - 1] == "\\":
        start -= 1
    return (position - start) % 2 == 1


def begins_environment(text: str, position: int) -> bool:
    """Whether an environment of several lines begins here, even if it does not end."""
    begin = _BEGIN.match(text, position)
    return begin is not None and begin[1] in ENVIRONMENTS


def environment_at(text: str, position: int) -> Environment | None:
    """The environment of several lines that begins here; None where none does, or it does not end."""
    begin = _BEGIN.match(text, position)
    if begin is None or begin[1] not in ENVIRONMENTS:
        return None
    name, depth = begin[1], 1
    for mark in _marks_of(name).finditer(text, begin.end()):
        depth += 1 if mark[1] == "begin" else -1
        if depth == 0:
            return Environment(name, begin[2], begin.start(), begin.end(), mark.start(), mark.end())
    return None


@cache
def _marks_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}")


@dataclass(slots=True)
class _Marks:
    """What structures a text; the marks of environments only count how deep the others lie.

    The search goes on at `position`, which its caller may set.
    """

    text: str
    pattern: re.Pattern[str]
    position: int = 0

    def __iter__(self) -> Iterator[Mark]:
        depth, last_brace = 0, self.text.rfind("}")
        while mark := self.pattern.search(self.text, self.position):
            self.position = mark.end()
            if not mark[0].endswith("{") or len(mark[0]) == 1:
                yield Mark(mark[0], mark.start(), mark.end(), depth)
            elif self.position > last_brace:
                self.position = mark.start() + 1
            else:
                depth = depth + 1 if mark[0] == "\\begin{" else max(0, depth - 1)
                self.position = self.text.index("}", self.position) + 1


def _behind_line_break(text: str, position: int) -> int:
    """Behind white space, a star, and a bracket that follows at once."""
    spacing = _SPACING.match(text, position)
    position = spacing.end() if spacing else position
    if text.startswith("[", position) and (end := text.find("]", position)) >= 0:
        return end + 1
    return position
