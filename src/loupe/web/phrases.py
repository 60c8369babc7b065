"""The places of an entry's texts on a page, by the text layer of a PDF: marks that help the eye, nothing more.

Blanks, case and typographic variants do not matter; what is not there as it is written is looked for nearly.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rapidfuzz import fuzz

Box: TypeAlias = tuple[float, float, float, float]

#: More characters than this are not read, longer phrases not looked for nearly.
MOST_CHARACTERS = 60_000
_LONGEST_PHRASE = 2_000
#: Shorter phrases stand everywhere; of those that do, no more than this are marked.
_SHORTEST, _MOST_PLACES = 2, 12
_NEAR = 80.0
_PLAIN = str.maketrans("‘’‚“”„–—‑−", "'''\"\"\"----")


@dataclass(frozen=True, slots=True)
class PageText:
    """The characters of a page without blanks, in plain forms, and the box of each as fractions of the page."""

    text: str
    boxes: tuple[Box, ...]


def squeezed(text: str) -> str:
    """The text without what does not matter here.

    >>> squeezed("“No ﬁre”")
    '"nofire"'
    """
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN)).casefold()
    return "".join(plain.split())


def page_text(characters: Sequence[tuple[str, Box]]) -> PageText:
    """The characters of a text layer, one by one squeezed: a ligature becomes its letters, all with its box."""
    parts: list[str] = []
    boxes: list[Box] = []
    for char, box in characters:
        plain = squeezed(char)
        parts.append(plain)
        boxes += [box] * len(plain)
    return PageText("".join(parts), tuple(boxes))


def places(page: PageText, phrase: str) -> list[list[Box]]:
    """The places of a phrase: for each the boxes of its lines."""
    wanted = squeezed(phrase)
    if len(wanted) < _SHORTEST or not page.text:
        return []
    spans = _exact(page.text, wanted)
    if len(spans) > _MOST_PLACES:
        return []
    if not spans and 6 <= len(wanted) <= _LONGEST_PHRASE and len(wanted) <= len(page.text):
        found = fuzz.partial_ratio_alignment(wanted, page.text, score_cutoff=_NEAR)
        spans = [(found.dest_start, found.dest_end)] if found is not None else []
    return [_lines(page.boxes[start:end]) for start, end in spans]


def _exact(text: str, wanted: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = text.find(wanted)
    while start >= 0 and len(spans) <= _MOST_PLACES:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def _lines(boxes: Sequence[Box]) -> list[Box]:
    """One box for each run of characters that stand beside each other."""
    lines: list[Box] = []
    for left, top, right, bottom in boxes:
        if lines:
            before = lines[-1]
            low, high = sorted((bottom - top, before[3] - before[1]))
            overlap = min(bottom, before[3]) - max(top, before[1])
            # An initial over several lines has a box of its own.
            if high < 2 * low and overlap > 0.3 * low and -high < left - before[2] < 3 * high:
                lines[-1] = (min(left, before[0]), min(top, before[1]), max(right, before[2]), max(bottom, before[3]))
                continue
        lines.append((left, top, right, bottom))
    return lines
