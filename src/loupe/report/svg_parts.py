"""Small parts of the pictures that are drawn here: axes with round numbers, text, and how wide text is.

Colours are readable on white and on near black; `currentColor` is the text's, whatever surrounds the picture.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from os.path import commonprefix

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
        """Where a value stands."""
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
