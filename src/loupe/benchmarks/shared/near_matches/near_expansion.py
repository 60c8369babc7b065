"""How far a near match reaches beyond an exact piece of it: the second half of an n-gram search.

Source: the expansion of `fuzzysearch` 0.8.1. A table row of the edit distance between the pattern and what was read so
far is a state; rows and what a character makes of them are remembered, so a page is read at one look-up per character.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

#: Rows remembered per pattern; with more the memory starts anew.
_MAX_STATES = 20_000
#: Answers remembered per pattern.
_MAX_ANSWERS = 20_000


@dataclass(frozen=True, slots=True)
class Expansion:
    """`size` characters were taken at this distance from the pattern."""

    distance: int
    size: int


class _Row:
    """One row of the table, values beyond the limit cut to limit + 1, and the rows that follow it by character."""

    __slots__ = ("after", "least", "total", "values")

    def __init__(self, values: tuple[int, ...]) -> None:
        self.values = values
        self.total = values[-1]
        #: Without the column of no pattern at all, as upstream counts it.
        self.least = min(values[1:])
        self.after: dict[str, _Row] = {}


class Expander:
    """Expansions of one pattern within one limit."""

    def __init__(self, pattern: str, limit: int) -> None:
        self._pattern = pattern
        self._limit = limit
        self._letters = frozenset(pattern)
        #: Upstream has two procedures; the one for short patterns gives up earlier, and so loses longer matches.
        self._short = len(pattern) <= max(2 * limit, 10)
        self._rows: dict[tuple[int, ...], _Row] = {}
        self._answers: dict[str, Expansion | None] = {}

    def expand(self, window: str) -> Expansion | None:
        """The beginning of the window nearest to the pattern, the longest of equals; None beyond the limit."""
        if not self._pattern:
            return Expansion(0, 0)
        try:
            return self._answers[window]
        except KeyError:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            found = self._answers[window] = self._expand(window)
            return found

    @cached_property
    def _start(self) -> tuple[int, ...]:
        return tuple(min(value, self._limit + 1) for value in range(len(self._pattern) + 1))

    def _expand(self, window: str) -> Expansion | None:
        limit = self._limit
        best = min(len(self._pattern), limit + 1)
        size = 0
        row = self._row(self._start)
        letters = self._letters
        for count, char in enumerate(window, 1):
            key = char if char in letters else ""
            following = row.after.get(key)
            row = self._next(row, key) if following is None else following
            if row.total <= best:
                if row.total <= limit:
                    best, size = row.total, count
            elif self._short and best <= limit and row.least >= best:
                break
            if min(row.least, row.values[0]) > min(best, limit):
                break
        return Expansion(best, size) if best <= limit else None

    def _next(self, row: _Row, char: str) -> _Row:
        cap = self._limit + 1
        old = row.values
        left = min(old[0] + 1, cap)
        values = [left]
        for index, wanted in enumerate(self._pattern):
            left = min(old[index] + (wanted != char), old[index + 1] + 1, left + 1, cap)
            values.append(left)
        following = self._row(tuple(values))
        row.after[char] = following
        return following

    def _row(self, values: tuple[int, ...]) -> _Row:
        row = self._rows.get(values)
        if row is None:
            if len(self._rows) >= _MAX_STATES:
                for each in self._rows.values():
                    each.after.clear()
                self._rows.clear()
            row = self._rows[values] = _Row(values)
        return row
