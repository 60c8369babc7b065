"""Near matches of a short text: all ways to read on from every possible start, character by character.

Source: the search that `fuzzysearch` 0.8.1 falls back on for texts with few characters per allowed difference. It does
not follow every alignment, so its steps are reproduced. The ways that are open after a character form a state; what a
character makes of it is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

#: A way: how many characters of the text looked for are read, and at which distance.
Ways: TypeAlias = frozenset[tuple[int, int]]

_MAX_STATES = 50_000


def scan(wanted: str, text: str, max_distance: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and distance of matches, by end; of equal start and end the nearest. Needs 0 < max_distance < len."""
    automaton = _Automaton(wanted, max_distance)
    open_starts: list[tuple[int, Ways]] = []
    for index, char in enumerate(text):
        last = index + 1 == len(text)
        still_open = []
        begun = automaton.begin(char)
        if begun is not None:
            read, distance = begun
            if read == len(wanted):
                yield index, index + 1, distance
            else:
                still_open.append((index, frozenset([begun])))
        for start, ways in open_starts:
            following, found = automaton.read(ways, char, last=last)
            if found is not None:
                yield start, index + 1, found
            if following:
                still_open.append((start, following))
        open_starts = still_open
    for start, ways in open_starts:
        distances = [distance + len(wanted) - read for read, distance in ways]
        if min(distances) <= max_distance:
            yield start, len(text), min(distances)


class _Automaton:
    def __init__(self, wanted: str, limit: int) -> None:
        self._wanted = wanted
        self._limit = limit
        self._letters = frozenset(wanted)
        self._known: dict[tuple[Ways, str, bool], tuple[Ways, int | None]] = {}
        head = wanted[: limit + 1]
        self._first = {char: head.index(char) for char in head}

    def begin(self, char: str) -> tuple[int, int] | None:
        """The way that begins with this character: what stands before it in the text looked for is left out."""
        skipped = self._first.get(char)
        return None if skipped is None else (skipped + 1, skipped)

    def read(self, ways: Ways, char: str, *, last: bool) -> tuple[Ways, int | None]:
        """The ways after a character, and the least distance of a match that ends with it."""
        key = (ways, char if char in self._letters else "", last)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_STATES:
                self._known.clear()
            known = self._known[key] = self._read(*key)
        return known

    def _read(self, ways: Ways, char: str, last: bool) -> tuple[Ways, int | None]:
        following: set[tuple[int, int]] = set()
        for way in ways:
            following.update(self._after(*way, char, last=last))
        ended = [distance for read, distance in following if read == len(self._wanted)]
        return frozenset(way for way in following if way[0] < len(self._wanted)), min(ended, default=None)

    def _after(self, read: int, distance: int, char: str, *, last: bool) -> Iterator[tuple[int, int]]:
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
