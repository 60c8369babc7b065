"""Find near matches of a text in a page, as `fuzzysearch` 0.8.1 does, in time linear in the page.

Protocol: docs/protocols/olmocr_bench.md#order. Short texts are scanned character by character; long ones are found by
n-grams that are expanded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

#: Characters of a piece of the text looked for from which exact pieces are searched for first.
_SHORTEST_PIECE = 3
#: Start, length and distance of a match in one number, in the order in which matches are grouped.
_LENGTH_BITS, _DISTANCE_BITS = 24, 16


@dataclass(frozen=True, slots=True)
class NearMatches:
    """The starts of the first and the last group of matches."""

    first: int
    last: int


def find_near_matches(wanted: str, text: str, max_distance: int) -> NearMatches | None:
    """Occurrences of `wanted` within a Levenshtein distance; None if there is none.

    `max_distance` must be less than the length of `wanted`; both are the benchmark's, `text` may be anything.
    """
    if max_distance == 0:
        first = text.find(wanted)
        return NearMatches(first, text.rfind(wanted)) if first >= 0 else None
    if len(wanted) // (max_distance + 1) >= _SHORTEST_PIECE:
        matches = _expand_pieces(wanted, text, max_distance)
    else:
        matches = scan(wanted, text, max_distance)
    return _first_and_last(matches)


def _expand_pieces(wanted: str, text: str, max_distance: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and distance of what grows around exact occurrences of pieces: one of them is in every near match."""
    size = len(wanted) // (max_distance + 1)
    for start in range(0, len(wanted) - size + 1, size):
        piece = wanted[start : start + size]
        right = Expander(wanted[start + size :], max_distance)
        lefts = [Expander(wanted[:start][::-1], limit) for limit in range(max_distance + 1)]
        last = max(0, min(len(text), len(text) - len(wanted) + start + size + max_distance))
        place = text.find(piece, max(0, start - max_distance), last)
        while place >= 0:
            grown = right.expand(text[place + size : place - start + len(wanted) + max_distance])
            if grown is not None:
                left = max_distance - grown.distance
                back = lefts[left].expand(text[max(0, place - start - left) : place][::-1])
                if back is not None:
                    yield place - back.size, place + size + grown.size, back.distance + grown.distance
            place = text.find(piece, place + 1, last)


def _first_and_last(matches: Iterator[tuple[int, int, int]]) -> NearMatches | None:
    """Overlapping matches form a group; the one with the least distance, then the longest, stands for it."""
    packed = array("Q")
    for start, end, distance in matches:
        packed.append((((start << _LENGTH_BITS) | (end - start)) << _DISTANCE_BITS) | distance)
    if not packed:
        return None
    first: int | None = None
    best: tuple[int, int, int] | None = None
    reach = 0
    for start, end, distance in _unpacked(packed):
        if best is None or start >= reach:
            first = best[2] if best is not None and first is None else first
            best, reach = (distance, start - end, start), end
        else:
            best, reach = min(best, (distance, start - end, start)), max(reach, end)
    assert best is not None
    return NearMatches(best[2] if first is None else first, best[2])


def _unpacked(packed: array[int]) -> Iterator[tuple[int, int, int]]:
    """Every match once, by start."""
    previous = -1
    for number in sorted(packed):
        if number != previous:
            previous = number
            start = number >> (_LENGTH_BITS + _DISTANCE_BITS)
            length = (number >> _DISTANCE_BITS) & ((1 << _LENGTH_BITS) - 1)
            yield start, start + length, number & ((1 << _DISTANCE_BITS) - 1)


#: A way: how many characters of the text looked for are read, and at which distance.
Way: TypeAlias = tuple[int, int]

_MAX_SCAN_STATES = 50_000


class _State:
    """Open ways, and by character what follows them: a state (None: no way is left) and the distance of a match."""

    __slots__ = ("after", "ways")

    def __init__(self, ways: frozenset[Way]) -> None:
        self.ways = ways
        self.after: dict[str, tuple[_State | None, int | None]] = {}


def scan(wanted: str, text: str, max_distance: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and distance of matches, by end; of equal start and end the nearest. Needs 0 < max_distance < len."""
    automaton = _Automaton(wanted, max_distance)
    letters = frozenset(wanted)
    open_starts: list[tuple[int, _State]] = []
    for index, char in enumerate(text):
        last = index + 1 == len(text)
        key = char if char in letters else ""
        still_open = []
        begun, found = automaton.begin(key)
        if found is not None:
            yield index, index + 1, found
        if begun is not None:
            still_open.append((index, begun))
        for start, state in open_starts:
            step = state.after.get(key) if not last else automaton.read(state, key, last=True)
            following, found = automaton.read(state, key) if step is None else step
            if found is not None:
                yield start, index + 1, found
            if following is not None:
                still_open.append((start, following))
        open_starts = still_open
    for start, state in open_starts:
        distance = min(distance + len(wanted) - read for read, distance in state.ways)
        if distance <= max_distance:
            yield start, len(text), distance


class _Automaton:
    def __init__(self, wanted: str, limit: int) -> None:
        self._wanted = wanted
        self._limit = limit
        self._states: dict[frozenset[Way], _State] = {}
        head = wanted[: limit + 1]
        self._first = {char: head.index(char) for char in head}

    def begin(self, char: str) -> tuple[_State | None, int | None]:
        """The state that begins with this character, or the distance of a match that it already is.

        What stands before the character in the text looked for is left out.
        """
        skipped = self._first.get(char)
        if skipped is None:
            return None, None
        if skipped + 1 == len(self._wanted):
            return None, skipped
        return self._state(frozenset([(skipped + 1, skipped)])), None

    def read(self, state: _State, char: str, *, last: bool = False) -> tuple[_State | None, int | None]:
        """Return the state after a character, and the least distance of a match that ends with it."""
        following = {after for way in state.ways for after in self._after(*way, char, last=last)}
        ended = min((distance for read, distance in following if read == len(self._wanted)), default=None)
        ways = frozenset(way for way in following if way[0] < len(self._wanted))
        found = (self._state(ways) if ways else None, ended)
        if not last:
            state.after[char] = found
        return found

    def _state(self, ways: frozenset[Way]) -> _State:
        state = self._states.get(ways)
        if state is None:
            if len(self._states) >= _MAX_SCAN_STATES:
                for each in self._states.values():
                    each.after.clear()
                self._states.clear()
            state = self._states[ways] = _State(ways)
        return state

    def _after(self, read: int, distance: int, char: str, *, last: bool) -> Iterator[Way]:
        """The ways after one way; one that has read everything is a match."""
        wanted, length = self._wanted, len(self._wanted)
        if wanted[read] == char:
            yield read + 1, distance
            return
        if distance == self._limit:
            return
        yield read, distance + 1
        if not last and read + 1 < length:
            yield read + 1, distance + 1
        for skipped in range(1, self._limit - distance + 1):
            if read + skipped == length:
                yield length, distance + skipped
                return
            if wanted[read + skipped] == char:
                yield read + skipped + 1, distance + skipped
                return


#: Rows remembered per pattern; with more the memory starts anew.
_MAX_EXPANSION_STATES = 20_000
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
            if len(self._rows) >= _MAX_EXPANSION_STATES:
                for each in self._rows.values():
                    each.after.clear()
                self._rows.clear()
            row = self._rows[values] = _Row(values)
        return row
