"""Spans between an opening and a closing mark, in time linear in the text; and spans held out of a rewrite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError

#: What stands for a span that is held out: its number between two characters of private use.
_OPEN, _CLOSE = "\ue000", "\ue001"
_HELD = re.compile(rf"{_OPEN}(\d+){_CLOSE}")


Mark: TypeAlias = re.Match[str]


def between(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str] | Callable[[Mark], re.Pattern[str]], *, least: int = 0
) -> Iterator[tuple[Mark, Mark]]:
    """Each opening with the nearest closing behind it, from left to right, `least` characters between them.

    It finds what `opening.*?closing` finds. A closing that is missing once is missing for all later openings.
    """
    closing_of = closing if callable(closing) else lambda _: closing
    missing: set[re.Pattern[str]] = set()
    position = 0
    while start := opening.search(text, position):
        wanted = closing_of(start)
        end = None if wanted in missing else wanted.search(text, start.end() + least)
        if end is None:
            missing.add(wanted)
            position = start.start() + 1
            continue
        yield start, end
        position = end.end()


def replaced(text: str, found: Iterator[tuple[Mark, Mark]], write: Callable[[Mark, Mark], str]) -> str:
    """The text with something else in place of each span, marks included."""
    parts, position = [], 0
    for start, end in found:
        parts += [text[position : start.start()], write(start, end)]
        position = end.end()
    return "".join(parts) + text[position:]


class NextSign:
    """Where a character stands next, asked again and again from left to right."""

    def __init__(self, text: str, sign: str) -> None:
        self._text = text
        self._sign = sign
        self._asked, self._found = 0, text.find(sign)

    def after(self, position: int) -> int:
        """The first place from `position` on; -1 where there is none."""
        if position < self._asked or 0 <= self._found < position:
            self._found = self._text.find(self._sign, position)
            self._asked = position
        return self._found


class Held:
    """Spans that are taken out of a text, so that a rewrite steps around them, and put back afterwards."""

    def __init__(self) -> None:
        self._spans: list[str] = []

    def keep(self, span: str) -> str:
        """What stands for the span."""
        self._spans.append(span)
        return f"{_OPEN}{len(self._spans) - 1}{_CLOSE}"

    def hold(self, text: str, pattern: re.Pattern[str]) -> str:
        """The text without what matches."""
        return pattern.sub(lambda found: self.keep(found[0]), text)

    def put_back(self, text: str) -> str:
        """The text with the spans again. Raises GradingError for what looks like a stand-in and stands for none."""
        if not self._spans:
            return text
        try:
            return _HELD.sub(lambda found: self._spans[int(found[1])], text)
        except (IndexError, ValueError) as error:
            raise GradingError(f"{type(error).__name__}: characters of private use") from None
