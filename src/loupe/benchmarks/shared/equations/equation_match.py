"""Check whether the symbols of one equation appear, side by side in the same way, in another.

The symbols of a drawn equation are characters with the middle of their boxes, and which one is next to which.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from loupe.benchmarks.shared.equations.rendering.drawing import Box, Drawing

#: Candidates looked at for one test, over all equations of the page, before its search is given up; counted and not
#: timed. Real equations need a few thousand each.
MOST_WORK = 20_000_000


class UndecidedError(Exception):
    """The search reached its limit and was given up."""


@dataclass(slots=True)
class Budget:
    """The number of candidates that the searches of one test may still examine."""

    left: int = MOST_WORK


@dataclass(frozen=True, slots=True)
class _Step:
    """A symbol and an earlier one next to it: what the one is assigned to must have next to it what the other is."""

    symbol: int
    earlier: int
    neighbours: Neighbours


#: For each symbol of the reference, what it may be assigned to.
_Candidates = list[set[int]]


def embed(reference: Symbols, hypothesis: Symbols, budget: Budget | None = None) -> list[int] | None:
    """For each symbol of the reference another one of the hypothesis that stands for it; None where there are none.

    Both have the same character. Where a symbol has a neighbour, its counterpart must have one in that direction: the
    neighbour's own counterpart if the neighbour is earlier in the list, else just one with its character. Upstream
    checks no more than that when the later of the two gets its turn, and neither does this. Raises UndecidedError.
    """
    budget = budget or Budget()
    search = _Search(reference, hypothesis, most=budget.left)
    try:
        return search.run()
    finally:
        budget.left -= search.work


class _Search:
    def __init__(self, reference: Symbols, hypothesis: Symbols, *, most: int) -> None:
        self._text = reference.text
        self._steps = sorted(_steps(reference, hypothesis), key=lambda step: step.symbol)
        self._same: dict[str, list[int]] = {}
        for symbol, character in enumerate(reference.text):
            self._same.setdefault(character, []).append(symbol)
        self._start = _first_candidates(reference, hypothesis)
        self._most = most
        self.work = 0

    def run(self) -> list[int] | None:
        """The assignment that is found first, if there is one; choices not yet tried wait on a stack."""
        waiting = [(self._start, list(range(len(self._text))))]
        while waiting:
            candidates, changed = waiting.pop()
            if not self._narrow(candidates, changed) or not self._enough(candidates):
                continue
            open_symbols = [symbol for symbol, left in enumerate(candidates) if len(left) > 1]
            if not open_symbols:
                return [next(iter(left)) for left in candidates]
            symbol = min(open_symbols, key=lambda each: len(candidates[each]))
            chosen = min(candidates[symbol])
            without = [set(left) for left in candidates]
            without[symbol].discard(chosen)
            self._count(2 * sum(map(len, candidates)))
            candidates[symbol] = {chosen}
            waiting += [(without, [symbol]), (candidates, [symbol])]
        return None

    def _narrow(self, candidates: _Candidates, changed: Iterable[int]) -> bool:
        """Take away what cannot be, until nothing changes; False if a symbol is left with nothing.

        Steps are taken to and fro, so that what a long row loses at one end reaches the other in one go.
        """
        last, steps = set(changed), self._steps
        while last:
            if not all(candidates[symbol] for symbol in last):
                return False
            now: set[int] = set()
            for step in steps:
                if step.symbol in last or step.earlier in last or step.symbol in now or step.earlier in now:
                    now.update(self._agree(step, candidates))
            for symbol in last | now:
                now.update(self._taken(symbol, candidates))
            last, steps = now, steps[::-1]
        return True

    def _agree(self, step: _Step, candidates: _Candidates) -> list[int]:
        """Make the candidates of two neighbours fit each other; the symbols that lost some."""
        before, earlier = candidates[step.symbol], candidates[step.earlier]
        self._count(len(before) + len(earlier))
        kept = {each for each in before if step.neighbours[each] in earlier}
        reached = {step.neighbours[each] for each in kept}
        lost = []
        if len(kept) < len(before):
            candidates[step.symbol] = kept
            lost.append(step.symbol)
        if not earlier <= reached:
            candidates[step.earlier] = {each for each in earlier if each in reached}
            lost.append(step.earlier)
        return lost

    def _taken(self, symbol: int, candidates: _Candidates) -> list[int]:
        """Return the candidates that are certainly assigned to one symbol, so to no other."""
        if len(candidates[symbol]) != 1:
            return []
        others = self._same[self._text[symbol]]
        self._count(len(others))
        lost = [each for each in others if each != symbol and not candidates[symbol].isdisjoint(candidates[each])]
        for each in lost:
            candidates[each] = candidates[each] - candidates[symbol]
        return lost

    def _enough(self, candidates: _Candidates) -> bool:
        """True if all symbols with the same character can be assigned to different candidates (augmenting paths)."""
        return all(self._matching(symbols, candidates) for symbols in self._same.values() if len(symbols) > 1)

    def _matching(self, symbols: Sequence[int], candidates: _Candidates) -> bool:
        owner: dict[int, int] = {}
        for symbol in symbols:
            came_from: dict[int, int] = {}
            queue, free = deque([symbol]), None
            while queue and free is None:
                current = queue.popleft()
                for candidate in candidates[current]:
                    self._count(1)
                    if candidate in came_from:
                        continue
                    came_from[candidate] = current
                    if candidate not in owner:
                        free = candidate
                        break
                    queue.append(owner[candidate])
            if free is None:
                return False
            _hand_over(free, symbol, came_from, owner)
        return True

    def _count(self, looked_at: int) -> None:
        self.work += looked_at
        if self.work > self._most:
            raise UndecidedError(f"more than {self._most} candidates")


def _hand_over(free: int, symbol: int, came_from: dict[int, int], owner: dict[int, int]) -> None:
    """Give the free candidate to whoever reached it, what that one had to the one before, back to `symbol`."""
    had = {of: candidate for candidate, of in owner.items()}
    candidate: int | None = free
    while candidate is not None:
        taker = came_from[candidate]
        owner[candidate] = taker
        candidate = None if taker == symbol else had[taker]


def _first_candidates(reference: Symbols, hypothesis: Symbols) -> _Candidates:
    """The symbols with the same character whose neighbours, where one is asked for, have the right characters."""
    places: dict[str, list[int]] = {}
    for place, character in enumerate(hypothesis.text):
        places.setdefault(character, []).append(place)
    candidates = []
    for symbol, character in enumerate(reference.text):
        left = places.get(character, [])
        for direction in DIRECTIONS:
            asked = reference.neighbours[direction][symbol]
            if asked is not None:
                there = hypothesis.neighbours[direction]
                left = [each for each in left if _is(hypothesis.text, there[each], reference.text[asked])]
        candidates.append(set(left))
    return candidates


def _is(text: str, symbol: int | None, character: str) -> bool:
    return symbol is not None and text[symbol] == character


def _steps(reference: Symbols, hypothesis: Symbols) -> list[_Step]:
    return [
        _Step(symbol, earlier, hypothesis.neighbours[direction])
        for direction in DIRECTIONS
        for symbol, earlier in enumerate(reference.neighbours[direction])
        if earlier is not None and earlier < symbol
    ]


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
    r"""Return what is in `semantics` except the annotation, without spaces, also those in tags.

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
