"""The ladders in `figures.ladders` of a result (docs/synth.md#figures), checked as they are read.

A result is a file of whoever made the run: what does not fit is left out, and a picture has a bound.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from loupe.typed import convert
from loupe.types import Result

#: More is no ladder that anybody could look at.
_MOST_LADDERS, _MOST_RUNGS, _LONGEST = 200, 60, 60


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One rung: its name, its number, the value with its 95 % interval, and the pages that stand on it."""

    rung: str
    rank: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bases: int = 0
    samples: list[str] = []


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """One curve, its rungs from easy to hard; `measure` is "cer" or "accuracy", `summary` what is read off it."""

    track: str
    kind: str
    measure: str
    axis: str
    points: list[Rung]
    summary: dict[str, Any] = {}


class ReadOff(msgspec.Struct, frozen=True, kw_only=True):
    """What was read off a curve: a share, or with `where` a place on the ladder (loupe.stats.curves.Crossing)."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    where: str = ""
    easiest: float = 0.0
    hardest: float = 0.0
    n: int = 0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """So many of `n`, with the exact interval; `corrected` of wrong check digits, `passed` of traps."""

    n: int
    passed: int = 0
    corrected: int = 0
    low: float | None = None
    high: float | None = None


def read_off(stored: object) -> ReadOff | None:
    """A figure of `Ladder.summary`; None where it is none."""
    try:
        return convert(stored, ReadOff)
    except (msgspec.ValidationError, RecursionError):
        return None


def share_of(stored: object) -> Share | None:
    """A share of `figures.traps` or `figures.corrected`; None where it is none."""
    try:
        found = convert(stored, Share)
    except (msgspec.ValidationError, RecursionError):
        return None
    return found if found.n > 0 else None


def ladders_of(result: Result) -> list[Ladder]:
    """The ladders of a result that can be shown, in its order."""
    stored = result.figures.get("ladders")
    found = []
    for each in stored[:_MOST_LADDERS] if isinstance(stored, list) else ():
        try:
            ladder = convert(each, Ladder)
        except (msgspec.ValidationError, RecursionError):
            continue
        words = (ladder.track, ladder.kind, ladder.axis, *(point.rung for point in ladder.points))
        numbers = [number for point in ladder.points for number in (point.rank, point.value, point.low, point.high)]
        fits = 2 <= len(ladder.points) <= _MOST_RUNGS and max(map(len, words)) <= _LONGEST
        if fits and all(number is None or math.isfinite(number) for number in numbers):
            found.append(ladder)
    return found
