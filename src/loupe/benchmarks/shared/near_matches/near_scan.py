"""Near matches of a short text: all ways to read on from every possible start, character by character.

Source: the search that `fuzzysearch` 0.8.1 falls back on for texts with few characters per allowed difference. It does
not follow every alignment, so its steps are reproduced. The ways that are open after a character form a state; what a
character makes of it is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

#: A way: how many characters of the text looked for are read, and at which distance.
Way: TypeAlias = tuple[int, int]

_MAX_STATES = 50_000


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
        """What follows a state after a character, and the least distance of a match that ends with it."""
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
            if len(self._states) >= _MAX_STATES:
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
