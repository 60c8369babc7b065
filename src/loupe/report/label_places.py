"""Where the names of points stand in a picture so that none lies on another, or on a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from loupe.report.svg_parts import FONT_SIZE, text_width

#: Left, top, right, bottom.
Box: TypeAlias = tuple[float, float, float, float]

_MARK = 7.0
#: Distances from the point at which places are tried once those right beside it are taken.
_FURTHER = range(22, 180, 10)
_DIRECTIONS = 16


class LabelPlace(NamedTuple):
    """Where a name begins, ends or has its middle (`anchor`), and the box that it fills."""

    x: float
    y: float
    anchor: str
    box: Box


def place_labels(
    points: Sequence[tuple[float, float]], names: Sequence[str], area: Box, line: Sequence[tuple[float, float]] = ()
) -> list[LabelPlace | None]:
    """A place inside `area` for the name of each point; None for one that has no room anywhere near.

    If possible, a name lies off the `line` through these places, and nearer to its own point than to others.
    """
    pieces = list(pairwise(line))
    taken: list[Box] = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in points]
    found: list[LabelPlace | None] = []
    for (x, y), name in zip(points, names, strict=True):
        width = text_width(name)
        free = [each for each in _candidates(x, y, width) if _is_free(each.box, taken, area)]
        others = [other for other in points if other != (x, y)]
        clear = [each for each in free if not any(crosses(piece, each.box) for piece in pieces)] or free
        place = next((each for each in clear if _is_nearest(each.box, (x, y), others)), clear[0] if clear else None)
        if place is not None:
            taken.append(place.box)
        found.append(place)
    return found


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share some room."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def crosses(piece: tuple[tuple[float, float], tuple[float, float]], box: Box) -> bool:
    """Whether a straight line between two points passes through a box."""
    (x, y), (to_x, to_y) = piece
    first, last = 0.0, 1.0
    for start, length, low, high in ((x, to_x - x, box[0], box[2]), (y, to_y - y, box[1], box[3])):
        if not length:
            if not low < start < high:
                return False
            continue
        near, far = sorted(((low - start) / length, (high - start) / length))
        first, last = max(first, near), min(last, far)
    return first < last


def _is_nearest(box: Box, own: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Whether no other point is as near to the box, and the way from the point to the box passes none."""
    mine = _nearest(box, own)
    for other in others:
        if math.dist(_nearest(box, other), other) < math.dist(mine, own) + _MARK / 2:
            return False
        steps = (((own[0] + (mine[0] - own[0]) * n / 8), own[1] + (mine[1] - own[1]) * n / 8) for n in range(9))
        if any(math.dist(step, other) < _MARK for step in steps) and math.dist(own, other) >= _MARK:
            return False
    return True


def _nearest(box: Box, point: tuple[float, float]) -> tuple[float, float]:
    """The place of a box that is nearest to a point."""
    return min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])


def _is_free(box: Box, taken: Sequence[Box], area: Box) -> bool:
    inside = box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]
    return inside and not any(overlap(box, other) for other in taken)


def _candidates(x: float, y: float, width: float) -> Iterator[LabelPlace]:
    """Places for a text of this width, the nearest first: beside, above, below, then in circles around the point."""
    yield _at(x + 10, y + 4, "start", width)
    yield _at(x - 10, y + 4, "end", width)
    yield _at(x, y - 11, "middle", width)
    yield _at(x, y + 20, "middle", width)
    for distance in _FURTHER:
        for step in range(_DIRECTIONS):
            angle = 2 * math.pi * step / _DIRECTIONS
            right, down = math.cos(angle), math.sin(angle)
            anchor = "start" if right > 0.3 else "end" if right < -0.3 else "middle"
            yield _at(x + distance * right, y + distance * down + 4, anchor, width)


def _at(x: float, y: float, anchor: str, width: float) -> LabelPlace:
    left = {"start": x, "end": x - width, "middle": x - width / 2}[anchor]
    return LabelPlace(x, y, anchor, (left, y - FONT_SIZE, left + width, y + 4))
