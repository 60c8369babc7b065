"""Near matches of a text in a page, chosen as `fuzzysearch` 0.8.1 chooses them (docs/protocols/olmocr_bench.md#order).

Neither of its two searches finds every alignment, and which of several overlapping matches stands for all of them moves
its start, so the rules are reproduced; automata that are built as they are needed keep the work linear in the page.
Upstream leaves ties between matches to Python's hash seed; here the first one counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from loupe.benchmarks.shared.near_matches.near_expansion import Expander
from loupe.benchmarks.shared.near_matches.near_scan import scan

#: Characters of a piece of the text looked for from which exact pieces are searched for first.
_SHORTEST_PIECE = 3
#: Start, length and distance of a match in one number, in the order in which matches are grouped.
_LENGTH_BITS, _DISTANCE_BITS = 24, 16


@dataclass(frozen=True, slots=True)
class NearMatches:
    """Where the first and the last group of matches start."""

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
