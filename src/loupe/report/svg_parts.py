"""Small parts of the pictures that are drawn here: axes with round numbers, text, and names that cover nothing.

Colours are readable on white and on near black; `currentColor` is the text's, whatever surrounds the picture.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from os.path import commonprefix
from typing import NamedTuple, TypeAlias

COLOURS = ("#2a78c2", "#c9611a", "#2f9160", "#a4529c", "#8a7a1e", "#6d6d6d")
GREY = "#808890"
FONT_SIZE = 12


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "currentColor") -> str:
    """Words at a place, escaped."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, extra: str = "") -> str:
    """A grey line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GREY}" {extra}/>'


def mark(number: int, x: float, y: float, colour: str, *, filled: bool) -> str:
    """A point of the curve of this number: circle, square or triangle, so that curves differ without colours."""
    paint = f'fill="{colour}"' if filled else f'fill="none" stroke="{colour}" stroke-width="1.5"'
    if number % 3 == 1:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" {paint}/>'
    if number % 3 == 2:
        return f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z" {paint}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" {paint}/>'


def text_width(words: str) -> float:
    """About how wide words are, rather too much: wide characters count twice."""
    return sum(12.5 if unicodedata.east_asian_width(char) in "WF" else 7.0 for char in words)


def shortened(names: Sequence[str], most: int = 34) -> list[str]:
    """Shorten names to at most `most` characters, but never two different names to the same text.

    A name keeps both of its ends. Names that still look the same lose the beginning that all of them share.

    >>> shortened(["a-long-name-of-an-engine-1", "a-long-name-of-an-engine-2", "other"], 12)
    ['a-lon…gine-1', 'a-lon…gine-2', 'other']
    """
    shared = len(commonprefix([*names])) if len(names) > 1 else 0  # noqa: RUF071  characters are meant
    for known in (names, [f"…{name[shared:]}" for name in names]):
        short = [_both_ends(name, most) for name in known]
        if len(set(short)) == len(set(names)):
            return short
    return [*names]


def _both_ends(name: str, most: int) -> str:
    start = (most - 1) // 2
    return name if len(name) <= most else f"{name[:start]}…{name[start + 1 - most :]}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers as places from `start` to `end`: even steps, or (`log`) even ratios."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, *, zero: bool = False, log: bool = False
    ) -> Scale:
        """A scale that holds all values with some room; `zero` begins it at 0."""
        low, high = min(values), max(values)
        if log:
            room = max((high / low) ** 0.08, 1.15)
            return cls(low / room, high * room, start, end, log=True)
        # Smaller differences are nothing that a picture could show, and no ticks stand between them.
        room = next(size for size in (high - low, abs(high), 1.0) if size > 1e-12) * 0.08
        return cls(0.0 if zero else low - room, high + room, start, end)

    def place(self, value: float) -> float:
        """The place of a value."""
        low, high, value = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, about: int = 6, *, most: float | None = None) -> list[float]:
        """Round numbers on the scale; where `most` is given, none beyond 0 and it."""
        return [value for value in self._ticks(about) if most is None or -1e-9 <= value <= most + 1e-9]

    def _ticks(self, about: int) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)) - 1, math.ceil(math.log10(self.high)) + 1)
            for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
                found = [digit * 10.0**power for power in powers for digit in digits]
                found = [value for value in found if self.low <= value <= self.high]
                if len(found) >= 3:
                    return found
        raw = (self.high - self.low) / about
        power: float = 10.0 ** math.floor(math.log10(raw))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def opening(width: float, height: float, label: str, extra: str = "", *, role: str = "img") -> str:
    """The start of a picture, with what it says in words for who does not see it; `role` "group" if it has links."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="{role}" aria-label="{escape(label)}" font-family="system-ui, sans-serif" '
        f'font-size="{FONT_SIZE}"{extra}>'
    )


def closed(parts: Iterable[str]) -> str:
    """The whole picture."""
    return "\n".join([*parts, "</svg>", ""])


#: Left, top, right, bottom.
Box: TypeAlias = tuple[float, float, float, float]

_MARK = 7.0
#: Distances from the point at which places are tried once those right beside it are taken.
_FURTHER = range(22, 180, 10)
_DIRECTIONS = 16


class LabelPlace(NamedTuple):
    """The place at which a name begins, ends or has its middle (`anchor`), and the box that it fills."""

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
    """True if two boxes share some room."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def crosses(piece: tuple[tuple[float, float], tuple[float, float]], box: Box) -> bool:
    """True if a straight line between two points passes through a box."""
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
    """True if no other point is as near to the box, and the way from the point to the box passes none."""
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
