"""The symbols of a drawn equation: characters with the middle of their boxes, and which one is next to which."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from loupe.benchmarks.shared.equations.rendering.drawing import Box, Drawing

#: Symbols that stand this near in one direction are in one row, or in one column, in pixels.
TOLERANCE = 5
DIRECTIONS = ("up", "down", "left", "right")
_UNSEEN = re.compile(r"[\s\u200a-\u200d\u2060\ufeff]+")
#: As the browser writes U+00A0; XML knows no such entity, and upstream's parser drops it.
_NO_BREAK_SPACE = "&nbsp;"
#: May not stand in XML; upstream's parser drops these characters.
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]+")


def without_spaces(text: str) -> str:
    """The text without anything that has no shape: white space, zero-width characters, the byte order mark."""
    return _UNSEEN.sub("", text)


def characters(texts: Sequence[str]) -> str:
    """The characters of the spans, one symbol each, in order."""
    return without_spaces("".join(texts))


def presentation(mathml: str) -> str:
    r"""What is in `semantics` but the annotation, without spaces, also those in tags.

    >>> presentation("<math><semantics><mrow><mi>x</mi></mrow><annotation>x</annotation></semantics></math>")
    '<mrow><mi>x</mi></mrow>'
    """
    inside = mathml.partition("<semantics>")[2].partition("<annotation")[0]
    return without_spaces(_NOT_XML.sub("", inside.replace(_NO_BREAK_SPACE, "")))


#: For each symbol the one that is next to it in one direction, None where there is none.
Neighbours = list[int | None]


@dataclass(frozen=True)
class Symbols:
    """Characters and the middles of their boxes."""

    text: str
    xs: Sequence[float]
    ys: Sequence[float]

    @cached_property
    def neighbours(self) -> dict[str, Neighbours]:
        """By direction: the nearest symbol beyond this one and at most 5 pixels aside; of equally near ones the first.

        Time is that of sorting, times the number of different places within 5 pixels.
        """
        up, down = _nearest(self.ys, self.xs)
        left, right = _nearest(self.xs, self.ys)
        return {"up": up, "down": down, "left": left, "right": right}


def symbols_of(drawing: Drawing) -> Symbols:
    """The symbols of a measured drawing; a span of several characters is cut into parts of equal width."""
    text, xs, ys = [], [], []
    for spelled, box in zip(drawing.texts, drawing.boxes or (), strict=True):
        seen = without_spaces(spelled)
        text.append(seen)
        xs += [_middle(box, place, len(seen)) for place in range(len(seen))]
        ys += [box.y + box.height / 2] * len(seen)
    return Symbols("".join(text), xs, ys)


def _middle(box: Box, place: int, parts: int) -> float:
    """In floating point exactly as upstream has it."""
    return box.x + (box.width * place) / parts + box.width / parts / 2


def _nearest(along: Sequence[float], aside: Sequence[float]) -> tuple[Neighbours, Neighbours]:
    """For each symbol the nearest one before it and after it on one axis, near enough to it on the other."""
    order = sorted(range(len(along)), key=lambda each: along[each])
    before = _nearest_before(order, along, aside)
    after = _nearest_before(order[::-1], [-value for value in along], aside)
    return before, after


def _nearest_before(order: Sequence[int], along: Sequence[float], aside: Sequence[float]) -> Neighbours:
    """Sweep along the axis; of every track (symbols with the same place aside) the last one is remembered.

    Symbols at the same place along the axis are not before one another, so they are entered together.
    """
    tracks = sorted(set(aside))
    last: dict[float, int] = {}
    found: Neighbours = [None] * len(order)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and along[order[end]] == along[order[start]]:
            end += 1
        level = sorted(order[start:end])
        for symbol in level:
            found[symbol] = _best(symbol, tracks, last, along, aside)
        for symbol in reversed(level):  # of symbols at one place the first one stays
            last[aside[symbol]] = symbol
        start = end
    return found


def _best(
    symbol: int, tracks: Sequence[float], last: dict[float, int], along: Sequence[float], aside: Sequence[float]
) -> int | None:
    """The nearest of the last symbols of all tracks within reach."""
    here, place = along[symbol], aside[symbol]
    reach = range(bisect_left(tracks, place - TOLERANCE - 1), bisect_right(tracks, place + TOLERANCE + 1))
    best: tuple[float, int] | None = None
    for track in reach:
        other = last.get(tracks[track])
        # The difference is taken as upstream takes it: two floating-point steps may disagree in the last place.
        if other is not None and abs(tracks[track] - place) <= TOLERANCE:
            candidate = (here - along[other], other)
            best = candidate if best is None or candidate < best else best
    return best[1] if best else None
