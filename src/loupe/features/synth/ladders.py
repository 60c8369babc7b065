"""The ladders in `figures.ladders` of a result (docs/synth.md#figures), checked as they are read.

A result is a file of whoever made the run: what does not fit is left out, and a picture has a bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from loupe.results.sections import format_value
from loupe.results.tables.record import Table
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
    """A figure read off a curve: a share, or with `where` a place on the ladder (loupe.stats.curves.Crossing)."""

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
    """A figure of `Ladder.summary`; None if it is none."""
    try:
        return convert(stored, ReadOff)
    except (msgspec.ValidationError, RecursionError):
        return None


def share_of(stored: object) -> Share | None:
    """A share of `figures.traps` or `figures.corrected`; None if it is none."""
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


_LIMITS = {
    ("legibility", "size", "limit"): "legible down to (px of x-height)",
    ("legibility", "contrast", "limit"): "legible down to (contrast)",
    ("density", "", "collapse"): "half of the accuracy is gone at (tokens)",
}


def ladder_sections(result: Result) -> list[Table]:
    """The tables of one result for a terminal; nothing for results without ladders."""
    ladders = ladders_of(result)
    sections = [_limits(ladders), _reliance(ladders), _degradations(ladders), _traps(result.figures)]
    return [each for each in sections if each is not None]


def _limits(ladders: Sequence[Ladder]) -> Table | None:
    rows = []
    for ladder in ladders:
        for name, stored in ladder.summary.items():
            title, found = _LIMITS.get((ladder.track, ladder.kind, name)), read_off(stored)
            if title and found:
                rows.append((title, _crossing(found), _ends(found, "number"), f"{found.n}"))
    return Table(title="limits", header=("", "value", "95 % interval", "pages"), rows=rows) if rows else None


def _reliance(ladders: Sequence[Ladder]) -> Table | None:
    rows = []
    for ladder in ladders:
        stored = ladder.summary.get("reliance")
        for point, each in zip(ladder.points, stored if isinstance(stored, list) else [], strict=False):
            if more := read_off(each):
                above = format_value(more.value, "fraction")
                rows.append((point.rung, format_value(point.value, "fraction"), above, _ends(more, "fraction")))
    header = ("text", "CER", "above natural", "95 % interval")
    return Table(title="prior reliance, by how little the text means", header=header, rows=rows) if rows else None


def _degradations(ladders: Sequence[Ladder]) -> Table | None:
    rows = []
    rungs = set()
    for ladder in ladders:
        if ladder.track != "degrade":
            continue
        area, half = read_off(ladder.summary.get("area")), read_off(ladder.summary.get("half_loss"))
        if area is None and "area" in ladder.summary:
            continue
        shown = [point for point in ladder.points if point.value is not None]
        rungs.add(" ".join(point.rung for point in shown))
        curve = " ".join(f"{100 * (point.value or 0):.0f}" for point in shown)
        # Positions without an order have no area; they come last.
        value = math.inf if area is None or area.value is None else area.value
        figures = (format_value(value, "fraction"), _ends(area, "fraction")) if area and value < math.inf else ("", "")
        rows.append((value, (ladder.kind.replace("_", " "), *figures, curve, _crossing(half) if half else "")))
    at = f"% right at severity {rungs.pop()}" if len(rungs) == 1 else "% right, clean to worst"
    header = ("degradation", "area", "95 % interval", at, "half is gone at")
    listed = [row for _, row in sorted(rows)]
    return Table(title="robustness, worst first", header=header, rows=listed) if listed else None


def _traps(figures: Mapping[str, Any]) -> Table | None:
    stored = figures.get("traps")
    found = {kind: share_of(each) for kind, each in stored.items()} if isinstance(stored, dict) else {}
    known = [(share.passed / share.n, kind, share) for kind, share in found.items() if share]
    rows = [
        (kind, f"{share.passed} of {share.n}", _ends(share, "fraction"))
        for _, kind, share in sorted(known, key=lambda each: each[:2])
    ]
    if corrected := share_of(figures.get("corrected")):
        count = f"{corrected.corrected} of {corrected.n}"
        rows.append(("wrong check digits put right", count, _ends(corrected, "fraction")))
    title = "traps" if known else "check digits"
    return Table(title=title, header=("kind", "passed", "95 % interval, exact"), rows=rows) if rows else None


def _crossing(found: ReadOff) -> str:
    """The place of a crossing, or on which side of the ladder it lies."""
    if found.where == "never":
        return f"beyond {found.hardest:g}"
    if found.where == "always":
        return f"before {found.easiest:g}"
    return "–" if found.value is None else _number(found.value)


def _number(value: float) -> str:
    """Three digits that mean something: more would only look exact."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ends(found: ReadOff | Share, unit: str) -> str:
    """The interval; an end that lies beyond the ladder is left open."""
    known = [end for end in (found.low, found.high) if end is not None]
    shown = [_number(end) if unit == "number" else format_value(end, unit).replace(" %", "") for end in known]
    if len(shown) < 2:
        return "" if not shown else f"up to {shown[0]}" if found.low is None else f"from {shown[0]} on"
    return " … ".join(shown)
