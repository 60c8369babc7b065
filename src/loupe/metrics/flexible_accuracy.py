"""Measures that do not mind the order: flexible character accuracy and bag of words.

C. Clausner, S. Pletschacher, A. Antonacopoulos, Pattern Recognition Letters 131 (2020); the algorithm of dinglehopper's
pull request 47. Rules: docs/protocols/archives.md#order-free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from rapidfuzz.distance import Levenshtein

#: Beyond, it takes minutes.
MOST_LINES: Final = 80
MOST_CHARACTERS: Final = 4_000

_EDITS: Final = (15, 20, 25, 30)
_LENGTHS: Final = tuple(range(0, 24, 3))
_OFFSETS: Final = (0, 1, 2, 3)
_SIZES: Final = (0, 1, 2, 3, 4, 5)


class Counts(NamedTuple):
    """Characters matched, replaced, deleted and inserted."""

    match: int = 0
    replace: int = 0
    delete: int = 0
    insert: int = 0

    @property
    def cost(self) -> int:
        """A replaced character costs as much as one deleted and one inserted."""
        return self.delete + self.insert + 2 * self.replace

    @property
    def accuracy(self) -> float:
        """1 − errors / characters of the reference; 1 if there is nothing, minus the errors if only insertions are."""
        errors, characters = self.replace + self.delete + self.insert, self.match + self.replace + self.delete
        if not characters:
            return float(-errors) if errors else 1.0
        return 1.0 - errors / characters


class _Part(NamedTuple):
    text: str
    line: int
    start: int


class _Match(NamedTuple):
    reference: _Part
    prediction: _Part
    counts: Counts


def flexible_counts(prediction: str, reference: str) -> Counts:
    """The counts of the best of 768 settings: lines are paired wherever they are, in pieces where that is better.

    Raises ValueError beyond 80 lines or 4,000 characters on either side.
    """
    sides = [
        sorted(
            (_Part(line, number, 0) for number, line in enumerate(text.splitlines()) if line),
            key=lambda part: -len(part.text),
        )
        for text in (reference, prediction)
    ]
    if any(len(side) > MOST_LINES for side in sides) or max(len(prediction), len(reference)) > MOST_CHARACTERS:
        raise ValueError(f"more than {MOST_LINES} lines or {MOST_CHARACTERS:,} characters")
    matcher = _Matcher()
    best: Counts | None = None
    for setting in product(_EDITS, _LENGTHS, _OFFSETS, _SIZES):
        counts = matcher.run(list(sides[0]), list(sides[1]), setting)
        if best is None or counts.accuracy > best.accuracy:
            best = counts
        if best.accuracy >= 1:
            break
    return best or Counts()


class _Matcher:
    """Pairs parts of lines; what two parts share is remembered over all settings."""

    def __init__(self) -> None:
        self.distance = cache(_distance)
        self.best_match = cache(self._best_match)

    def run(self, wanted: list[_Part], found: list[_Part], setting: tuple[int, int, int, int]) -> Counts:
        total = Counts()
        while wanted and found:
            match, places = self._best_of_all(wanted, found, setting)
            if match is None:
                break
            total = _sum(total, match.counts)
            _take(wanted, places[0], match.reference)
            _take(found, places[1], match.prediction)
        deleted, inserted = (sum(len(part.text) for part in side) for side in (wanted, found))
        return _sum(total, Counts(delete=deleted, insert=inserted))

    def _best_of_all(
        self, wanted: Sequence[_Part], found: Sequence[_Part], setting: tuple[int, int, int, int]
    ) -> tuple[_Match | None, tuple[_Part, _Part]]:
        threshold = min(len(wanted[0].text), len(found[0].text)) - 1
        best: _Match | None = None
        places = wanted[0], found[0]
        for part in wanted:
            if len(part.text) <= threshold:
                break
            chosen: _Match | None = None
            chosen_place, lowest = found[0], 0.0
            for other in found:
                match = self.best_match(part, other)
                if match is None:
                    continue
                penalty = _penalty(part, other, match, setting)
                if chosen is None or penalty < lowest:
                    chosen, chosen_place, lowest = match, other, penalty
            if chosen and (best is None or chosen.counts.accuracy > best.counts.accuracy):
                best, places = chosen, (part, chosen_place)
            if best and best.counts.accuracy >= 1:
                break
        return best, places

    def _best_match(self, wanted: _Part, found: _Part) -> _Match | None:
        shorter = min(len(wanted.text), len(found.text))
        kept: _Match | None = None
        for here in range(len(wanted.text) - shorter + 1):
            for there in range(len(found.text) - shorter + 1):
                kept = self._better(kept, _cut(wanted, here, shorter), _cut(found, there, shorter), shorter)
        kept = self._better(kept, wanted, found, shorter)
        if kept and (kept.counts.delete or kept.counts.replace):
            here, there = kept.reference.start - wanted.start, kept.prediction.start - found.start
            length, more = len(kept.reference.text), kept.counts.delete + kept.counts.replace
            for longer in range(length + 1, length + more + 1):
                kept = self._better(kept, _cut(wanted, here, longer), _cut(found, there, longer), shorter)
        whole = _Match(wanted, _Part("", found.line, found.start), Counts(delete=len(wanted.text)))
        return whole if kept is None or whole.counts.cost < kept.counts.cost else kept

    def _better(self, kept: _Match | None, wanted: _Part, found: _Part, shorter: int) -> _Match | None:
        counts = self.distance(wanted.text, found.text)
        if counts.replace < shorter and (kept is None or counts.cost < kept.counts.cost):
            return _Match(wanted, found, counts)
        return kept


def _cut(part: _Part, start: int, length: int) -> _Part:
    return _Part(part.text[start : start + length], part.line, part.start + start)


def _take(side: list[_Part], part: _Part, match: _Part) -> None:
    """Take a part out; what the match leaves of it goes back, longest first."""
    side.remove(part)
    if len(match.text) < len(part.text):
        start = match.start - part.start
        rest = (_cut(part, 0, start), _cut(part, start + len(match.text), len(part.text)))
        side.extend(piece for piece in rest if piece.text)
        side.sort(key=lambda piece: -len(piece.text))


def _penalty(wanted: _Part, found: _Part, match: _Match, setting: tuple[int, int, int, int]) -> float:
    edit, length, offset, size = setting
    difference = abs(len(wanted.text) - len(found.text))
    off = 0.0
    if difference > 1:
        place = max(match.reference.start - wanted.start, match.prediction.start - found.start)
        off = difference / 2 - abs(place - difference / 2)
    shorter = min(len(wanted.text), len(found.text))
    return match.counts.cost * edit + difference * length + off * offset - shorter * size


def _distance(reference: str, prediction: str) -> Counts:
    tags = Counter(edit.tag for edit in Levenshtein.editops(reference, prediction))
    replaced, deleted = tags["replace"], tags["delete"]
    return Counts(len(reference) - replaced - deleted, replaced, deleted, tags["insert"])


def _sum(one: Counts, other: Counts) -> Counts:
    return Counts(*(a + b for a, b in zip(one, other, strict=True)))


def bag_of_words_error(prediction: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Words that only one side has, by count, and the words of both: the counts of the rate."""
    found, wanted = Counter(prediction), Counter(reference)
    difference = (found - wanted).total() + (wanted - found).total()
    return difference, len(prediction) + len(reference)
