"""Character and word accuracy as the ISRI tools compute them (ocreval, UTF-8).

Rules and sources: docs/protocols/archives.md#isri.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Indel, Levenshtein

from loupe.metrics.segments import word_pieces_unicode_8

#: Up to here the alignment is made: it takes time and memory by their square.
MOST_EDITS: Final = 3_000

_BLANKS: Final = "\t\v\f\r\u00a0"
_WILDCARD: Final = "~"
_LONGEST_SIDE: Final = 24


def isri_text(text: str) -> str:
    """A text as the tools take it: markers `^` removed, blanks unified and stripped, no empty line.

    A line break at the very end stays.
    """
    text = text.replace("^", "")
    text = "".join(
        " " if sign in _BLANKS or (not sign.isascii() and unicodedata.category(sign)[0] == "Z") else sign
        for sign in text
    )
    lines = [" ".join(part for part in line.split(" ") if part) for line in text.split("\n")]
    kept = [line for line in lines if line]
    return "\n".join(kept) + ("\n" if kept and not lines[-1] else "")


def isri_character_errors(prediction: str, reference: str) -> tuple[int, int]:
    """Errors and characters of two texts from `isri_text`. `~` in the reference is a wildcard and no character."""
    characters = len(reference) - reference.count(_WILDCARD)
    if _WILDCARD not in reference and _WILDCARD not in prediction:
        return Levenshtein.distance(prediction, reference), characters
    return sum(piece.errors for piece in isri_pieces(prediction, reference)), characters


class Piece(NamedTuple):
    """A stretch without a match: its place in the reference and in the prediction."""

    reference: slice
    prediction: slice
    errors: int


def isri_pieces(prediction: str, reference: str) -> Iterator[Piece]:
    """The unmatched pieces, in order, of the alignment that the tools choose. Raises ValueError beyond 3,000 edits."""
    place = 0, 0
    for start, end, shift in _matched(prediction, reference):
        yield from _piece(prediction, reference, place, (start, start + shift))
        place = end, end + shift
    yield from _piece(prediction, reference, place, (len(reference), len(prediction)))


def _piece(prediction: str, reference: str, start: tuple[int, int], end: tuple[int, int]) -> Iterator[Piece]:
    if start == end:
        return
    wanted, found = slice(start[0], end[0]), slice(start[1], end[1])
    wildcards = reference.count(_WILDCARD, start[0], end[0])
    errors = max(end[0] - start[0] - wildcards, end[1] - start[1] - wildcards, 0)
    yield Piece(wanted, found, errors)


def _matched(prediction: str, reference: str) -> list[tuple[int, int, int]]:
    """Matched stretches (start and end in the reference, shift of the prediction), in order.

    The furthest-reaching points of Ukkonen, by number of edits and shift.
    """
    length, other = len(reference), len(prediction)
    goal = other - length
    starts, ends = _Reached(), _Reached()
    edits = -1
    while edits < 0 or ends.at(edits, goal) < length:
        edits += 1
        if edits > MOST_EDITS:
            raise ValueError(f"more than {MOST_EDITS:,} edits")
        for shift in range(-edits, edits + 1):
            steps = (place for _, place in _steps(ends, edits - 1, shift))
            inside = [place for place in steps if place <= length and 0 <= place + shift <= other]
            end = start = max(inside, default=-1) if edits else 0
            while (
                0 <= end < length
                and end + shift < other
                and reference[end] == prediction[end + shift]
                and reference[end] != _WILDCARD
            ):
                end += 1
            starts.numbers.append(start)
            ends.numbers.append(end)
    stretches: list[tuple[int, int, int]] = []
    shift = goal
    for spent in range(edits, -1, -1):
        start, end = starts.at(spent, shift), ends.at(spent, shift)
        if end > start:
            stretches.append((start, end, shift))
        if spent:
            shift = next(near for near, place in _steps(ends, spent - 1, shift) if place == start)
    return stretches[::-1]


class _Reached:
    """Places in the reference by number of edits and shift, -1 where there is none: row after row in one array."""

    def __init__(self) -> None:
        self.numbers = array("i")

    def at(self, edits: int, shift: int) -> int:
        return self.numbers[edits * edits + edits + shift] if -edits <= shift <= edits else -1


def _steps(ends: _Reached, edits: int, shift: int) -> Iterator[tuple[int, int]]:
    """The shifts that one edit leads from, and where it leads, in the order that decides among equals."""
    for near, step in ((shift + 1, 1), (shift, 1), (shift - 1, 0)):
        if (place := ends.at(edits, near)) >= 0:
            yield near, place + step


def isri_confusions(prediction: str, reference: str) -> Counter[tuple[str, str]]:
    """Errors by piece of the reference and of the prediction, spelled as the tools print them."""
    counts: Counter[tuple[str, str]] = Counter()
    for piece in isri_pieces(prediction, reference):
        if piece.errors:
            counts[_spelled(reference[piece.reference]), _spelled(prediction[piece.prediction])] += piece.errors
    return counts


def _spelled(piece: str) -> str:
    """A side of a confusion: signs that cannot be seen by their number, at most 24 bytes, then dots."""
    spelled = ""
    for sign in piece:
        category = unicodedata.category(sign)
        if sign == "\n":
            shown = "<\\n>"
        elif category[0] in "LNPS" or category == "Co" or sign == " ":
            shown = sign
        elif category[0] == "M":
            shown = "\u25cc" + sign
        else:
            shown = f"<{ord(sign):02X}>" if ord(sign) < 256 else f"<{ord(sign):04X}>"
        if len((spelled + shown).encode()) > _LONGEST_SIDE:
            return spelled + "..."
        spelled += shown
    return spelled


def missed_words(prediction: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Missed words and words of the reference. Words that were put in cost nothing: this is no word error rate."""
    numbers: dict[str, int] = {}
    sides = [[numbers.setdefault(word, len(numbers)) for word in side] for side in (prediction, reference)]
    common = (len(prediction) + len(reference) - Indel.distance(*sides)) // 2
    return len(reference) - common, len(reference)


def isri_words(text: str) -> list[str]:
    """The words of a text from `isri_text`, in lower case."""
    lowered = "".join(sign.lower()[0] for sign in text)
    return [
        unicodedata.normalize("NFC", piece)
        for piece in word_pieces_unicode_8(lowered)
        if (category := unicodedata.category(piece[0]))[0] in "LMN" or category in ("Pc", "Co")
    ]


def class_counts(
    prediction: str, reference: str, classes: Sequence[tuple[int, int, str]]
) -> dict[str, tuple[int, int]]:
    """Characters of the reference and missed ones by ISRI's class, and their `Total`.

    `classes`: first and last code point and name, sorted; what is in none is "Unassigned".
    """
    starts = [first for first, _, _ in classes]

    def name_of(sign: str) -> str:
        place = bisect_right(starts, ord(sign)) - 1
        return classes[place][2] if place >= 0 and ord(sign) <= classes[place][1] else "Unassigned"

    counts = Counter(name_of(sign) for sign in reference if sign != _WILDCARD)
    missed = Counter(
        name_of(sign)
        for piece in isri_pieces(prediction, reference)
        for sign in reference[piece.reference]
        if sign != _WILDCARD
    )
    total = {"Total": (sum(counts.values()), sum(missed.values()))}
    return {name: (count, missed[name]) for name, count in counts.items()} | total
