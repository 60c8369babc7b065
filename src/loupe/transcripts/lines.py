"""Pair the lines of two readings of a page: by place on the page, else by id, else not at all.

Rules: docs/protocols/archives.md#loupe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loupe.transcripts.page import Box, Line

_ENOUGH: Final = 0.9
#: Pairs of lines that share a place; more are no page.
_MOST_CANDIDATES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PairedLines:
    """Places in the two lists of lines that belong together; `by` is None, and `reason` says why, if none do."""

    by: Literal["geometry", "id"] | None
    pairs: tuple[tuple[int, int], ...] = ()
    reason: str = ""


def pair_lines(reference: Sequence[Line], prediction: Sequence[Line]) -> PairedLines:
    """Pair lines, each at most once, in the order of the reference. Ids never count where both sides have boxes."""
    if not reference or not prediction:
        return PairedLines(None, reason="a side has no lines")
    if _most_have_boxes(reference) and _most_have_boxes(prediction):
        pairs = _by_place(reference, prediction)
        if pairs is None:
            return PairedLines(None, reason="too many lines lie over each other")
        return PairedLines("geometry", pairs)
    ids = {line.id: place for place, line in reversed(list(enumerate(prediction))) if line.id}
    shared = [(place, ids[line.id]) for place, line in enumerate(reference) if line.id in ids]
    if len(shared) >= _ENOUGH * len(reference):
        once = {there: (here, there) for here, there in reversed(shared)}
        return PairedLines("id", tuple(sorted(once.values())))
    return PairedLines(None, reason="too few lines have a box, or an id that the other side knows")


def _most_have_boxes(lines: Sequence[Line]) -> bool:
    return sum(line.box is not None for line in lines) >= _ENOUGH * len(lines)


def _by_place(reference: Sequence[Line], prediction: Sequence[Line]) -> tuple[tuple[int, int], ...] | None:
    """Largest common area first; candidates overlap by at least half of the smaller height.

    A sweep from top to bottom: only lines that are open at the same height are compared.
    None beyond a million candidates.
    """
    starts = sorted(
        [(line.box[1], 0, place) for place, line in enumerate(reference) if line.box]
        + [(line.box[1], 1, place) for place, line in enumerate(prediction) if line.box]
    )
    boxes = [[line.box for line in side] for side in (reference, prediction)]
    open_lines: list[list[int]] = [[], []]
    candidates: list[tuple[float, int, int]] = []
    for top, side, place in starts:
        box = boxes[side][place]
        other = [each for each in open_lines[1 - side] if (boxes[1 - side][each] or _NOWHERE)[3] > top]
        open_lines[1 - side] = other
        for each in other:
            here, there = (place, each) if side == 0 else (each, place)
            if area := _common_area(box or _NOWHERE, boxes[1 - side][each] or _NOWHERE):
                candidates.append((-round(area, 9), here, there))
        open_lines[side].append(place)
        if len(candidates) > _MOST_CANDIDATES:
            return None
    taken: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    for _, here, there in sorted(candidates):
        if here not in taken[0] and there not in taken[1]:
            taken[0].add(here)
            taken[1].add(there)
            pairs.append((here, there))
    return tuple(sorted(pairs))


_NOWHERE: Final = (0.0, 0.0, 0.0, 0.0)


def _common_area(one: Box, other: Box) -> float:
    """0 if the boxes share less than half of the smaller height."""
    down = min(one[3], other[3]) - max(one[1], other[1])
    across = min(one[2], other[2]) - max(one[0], other[0])
    if down <= 0 or across <= 0 or down < 0.5 * min(one[3] - one[1], other[3] - other[1]):
        return 0.0
    return down * across
