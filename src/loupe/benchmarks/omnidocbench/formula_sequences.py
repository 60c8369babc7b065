"""Pair formulas with neighbouring predicted lines in the order of the page, at the least total distance."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from loupe.benchmarks.omnidocbench.answer_formulas import RESCUED
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.line_match import array_of
from loupe.benchmarks.omnidocbench.lines import PredictedLine, TruthLine, predicted_lines
from loupe.benchmarks.omnidocbench.records import Item, MatchedSample, PredictedItem, Work, piece_of

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.neighbours import Distances
    from loupe.benchmarks.omnidocbench.rules import Rules


#: More sequences than these are sifted before each is looked at.
_FEW = 32
#: Costs that differ by no more are equal.
TOLERANCE = 1e-12


class _Sequence(NamedTuple):
    """Predicted lines that may be one formula; `inline` is 1 for a single inline formula."""

    lines: tuple[int, ...]
    norm: str
    inline: int

    def edits_to(self, block: int, formulas: Formulas) -> int:
        """The edit distance to a formula; those without gaps are measured for several candidates, and kept."""
        has_gaps = self.lines[-1] - self.lines[0] >= len(self.lines)
        measured = formulas.truth.edits_once if has_gaps else formulas.truth.edits
        return measured(block, self.norm)


class _Sequences:
    """The sequences that one formula may be of the lines from one on."""

    def __init__(self, grower: _Grower, start: int) -> None:
        self.all = grower.from_(start)
        self._lengths = np.array([len(each.norm) for each in self.all])
        self._stops = np.array([each.lines[-1] + 1 for each in self.all], dtype=np.int64)
        self._first = start

    def promising(self, row: Sequence[_State | None], cost: float, length: int) -> Sequence[_Sequence]:
        """Those that may be better than what is there, by their lengths; all where there are few."""
        if len(self.all) <= _FEW:
            return self.all
        reached = row[self._first : int(self._stops.max()) + 1]
        costs = np.array([state.cost if state else math.inf for state in reached])
        least = 1 - np.minimum(self._lengths, length) / np.maximum(self._lengths, length)
        kept = np.flatnonzero(cost + least <= costs[self._stops - self._first] + 2 * TOLERANCE)
        return [self.all[index] for index in kept]


class _State(NamedTuple):
    """The best way so far through some formulas and some predicted lines; `pair` is its last step, if it paired any."""

    cost: float
    edits: int
    length: int
    inline: int
    before: _State | None
    pair: Pair | None


def pairs_in_order(formulas: Formulas, *, gaps: bool) -> list[Pair] | None:
    """One pair for each formula; None where either side is empty. Raises TooMuchWorkError."""
    blocks, lines = len(formulas.truth.lines), len(formulas.predicted)
    if not blocks or not lines:
        return None
    grower = _grower(formulas, gaps=gaps)
    sequences = [_Sequences(grower, start) for start in range(lines)]
    states: list[list[_State | None]] = [[None] * (lines + 1) for _ in range(blocks + 1)]
    states[0][0] = _State(0.0, 0, 0, 0, None, None)
    for block in range(blocks + 1):
        for line in range(lines + 1):
            state = states[block][line]
            if state is None:
                continue
            if line < lines:
                _offer(states[block], line + 1, state._replace(cost=state.cost + 1, before=state, pair=None))
            if block < blocks:
                _offer(states[block + 1], line, state._replace(cost=state.cost + 1, before=state, pair=Pair(block)))
            if block < blocks and line < lines:
                _pair(states[block + 1], state, formulas, block, sequences[line])
    return list(_traced(states[blocks][lines]))[::-1]


def _pair(row: list[_State | None], state: _State, formulas: Formulas, block: int, sequences: _Sequences) -> None:
    """Offer the states behind pairs, but for those of which the lengths alone tell that they cost too much."""
    length = len(formulas.truth.norms[block])
    formulas.truth.work.spend(0, 0, times=10)
    for sequence in sequences.promising(row, state.cost, length):
        stop = sequence.lines[-1] + 1
        longest = max(length, len(sequence.norm))
        there = row[stop]
        if there and state.cost + abs(length - len(sequence.norm)) / longest > there.cost + TOLERANCE:
            continue
        edits = sequence.edits_to(block, formulas)
        cost = state.cost + edits / longest
        if there and cost > there.cost + TOLERANCE:
            continue
        pair = Pair(block, sequence.lines, edits, longest)
        inline = state.inline + sequence.inline
        _offer(row, stop, _State(cost, state.edits + edits, state.length + longest, inline, state, pair))


def _offer(row: list[_State | None], place: int, new: _State) -> None:
    old = row[place]
    if old is None or _is_better(new, old):
        row[place] = new


def _is_better(new: _State, old: _State) -> bool:
    """Cheaper; or as cheap, with fewer edits for its length; or with as many, and fewer inline formulas."""
    if abs(new.cost - old.cost) > TOLERANCE:
        return new.cost < old.cost
    if bool(new.length) != bool(old.length):
        return bool(new.length)
    crossed = new.edits * old.length, old.edits * new.length
    return crossed[0] < crossed[1] if crossed[0] != crossed[1] else new.inline < old.inline


def _traced(state: _State | None) -> Iterator[Pair]:
    while state:
        if state.pair:
            yield state.pair
        state = state.before


def most_lines(blocks: int, lines: int) -> int:
    """So many predicted lines may be one formula."""
    return min(lines, 12 if blocks > 1 and abs(blocks - lines) >= 2 else 10)


def _allowed_gaps(blocks: int, lines: int) -> int:
    apart = abs(blocks - lines)
    return 2 if apart >= 3 else 1 if apart >= 1 or lines >= 4 else 0


@dataclass(frozen=True, slots=True)
class _Grower:
    """The parts that sequences are made of: of each predicted line its text, its item, and whether it is a displayed
    formula.
    """

    norms: Sequence[str]
    items: Sequence[int]
    displayed: Sequence[bool]
    most: int
    window: int
    skips: int
    work: Work

    def from_(self, start: int) -> list[_Sequence]:
        """The lines from `start` on that may be one formula: of several with the same text and end, the first.

        Shorter ones come before those that go on with them, those without gaps before those with. Raises
        TooMuchWorkError.
        """
        found: dict[tuple[int, str], _Sequence] = {}
        self._grow(found, (start,), self.norms[start], self.displayed[start], self.skips)
        return list(found.values())

    def _grow(
        self,
        found: dict[tuple[int, str], _Sequence],
        lines: tuple[int, ...],
        norm: str,
        follows: bool,
        skips: int,
    ) -> None:
        """Add the sequence, and all that begin with it; `follows`: displayed formulas without gaps.

        What begins a sequence that may be one formula may be one itself: lines of one item, or displayed formulas that
        follow each other.
        """
        last = lines[-1]
        inline = int(len(lines) == 1 and not self.displayed[last])
        found.setdefault((last, norm), _Sequence(lines, norm, inline))
        self.work.spend(len(norm), 1, times=2)
        if len(lines) == self.most:
            return
        item = self.items[lines[0]]
        for index in range(last + 1, min(len(self.norms), lines[0] + self.window, last + 2 + skips)):
            goes_on = follows and index == last + 1 and self.displayed[index]
            if goes_on or item == self.items[index] == self.items[last]:
                longer = f"{norm} {self.norms[index]}"
                self._grow(found, (*lines, index), longer, goes_on, skips - (index - last - 1))


def _grower(formulas: Formulas, *, gaps: bool) -> _Grower:
    blocks, lines = len(formulas.truth.lines), len(formulas.predicted)
    most = most_lines(blocks, lines)
    return _Grower(
        norms=[line.norm for line in formulas.predicted],
        items=[line.looked_up.index for line in formulas.predicted],
        displayed=[formulas.type(line) == FORMULA for line in range(lines)],
        most=most,
        window=min(lines, most + 2) if gaps else most,
        skips=_allowed_gaps(blocks, lines) if gaps else 0,
        work=formulas.truth.work,
    )


INLINE: Final = "equation_inline"
#: Where formulas were found that the answer does not mark as such; to the match they are displayed ones.
_RESCUES: Final = ("text_formula", "image_formula", RESCUED, "table_formula_rescue")


def as_formula_type(category: str) -> str:
    """A category in the results, wherever a formula was found."""
    return FORMULA if category in _RESCUES else category


def formula_type(item: Item) -> str:
    """Displayed or inline."""
    return as_formula_type(item.fine_category or item.category)


def pool_of(items: Sequence[Item]) -> list[PredictedItem]:
    """The formulas of an answer, each place and content once: those that it marks as formulas, then rescued ones."""
    marked = (PredictedItem(index, item) for index, item in enumerate(items) if item.category == FORMULA)
    rescued = (
        PredictedItem(index, replace(item, category=FORMULA))
        for index, item in enumerate(items)
        if item.category == RESCUED
    )
    found: dict[Item, PredictedItem] = {}
    for source in (*marked, *rescued):
        found.setdefault(source.item, source)
    return list(found.values())


def in_order(sources: Iterable[PredictedItem]) -> list[PredictedItem]:
    """By place; of those that start together, displayed ones first."""
    return sorted(sources, key=lambda source: (source.item.start, formula_type(source.item) == INLINE, source.item.end))


class TruthSide:
    """The formulas of the ground truth, and how far each is from any prediction."""

    def __init__(self, lines: Sequence[TruthLine], work: Work) -> None:
        self.lines = lines
        self.work = work
        self.norms = [line.norm for line in lines]
        self._lengths = np.array([len(norm) for norm in self.norms], dtype=np.int64)
        self._edits: dict[tuple[int, str], int] = {}
        self.column = functools.cache(self._column)

    def edits(self, block: int, norm: str) -> int:
        """The edit distance of one formula and a prediction, kept for the next time. Raises TooMuchWorkError."""
        key = block, norm
        if key not in self._edits:
            self._edits[key] = self.edits_once(block, norm)
        return self._edits[key]

    def edits_once(self, block: int, norm: str) -> int:
        """The same for a prediction that hardly comes again. Raises TooMuchWorkError."""
        self.work.spend(len(self.norms[block]), len(norm))
        return Levenshtein.distance(self.norms[block], norm)

    def _column(self, norm: str) -> Distances:
        """The distance of every formula and a prediction, 0..1."""
        edits = np.array([self.edits(block, norm) for block in range(len(self.lines))], dtype=np.int64)
        return edits / np.maximum(np.maximum(self._lengths, len(norm)), 1)


class Pair(NamedTuple):
    """One formula, the predicted lines that it is held against (none: an empty tuple), and their edit distance."""

    block: int
    lines: tuple[int, ...] = ()
    edits: int = 0
    longest: int = 0

    @property
    def distance(self) -> float:
        """1 without prediction."""
        if not self.lines:
            return 1.0
        return self.edits / self.longest if self.longest else 0.0


@dataclass(frozen=True, slots=True)
class Formulas:
    """Both sides, the predictions in one of the ways to part them. `sources` are not filtered as `predicted` are."""

    truth: TruthSide
    sources: Sequence[PredictedItem]
    predicted: Sequence[PredictedLine]

    def pair(self, block: int, lines: tuple[int, ...]) -> Pair:
        """The pair with its distance."""
        norm = self.norm(lines)
        return Pair(block, lines, self.truth.edits(block, norm), max(len(self.truth.norms[block]), len(norm)))

    def norm(self, lines: Sequence[int]) -> str:
        """Return the text that is compared for several lines: joined by blanks, none of which is in a formula."""
        return " ".join(self.predicted[line].norm for line in lines)

    def type(self, line: int) -> str:
        """Displayed or inline, of the item that is looked up for a line."""
        return formula_type(self.predicted[line].looked_up.item)


def formulas_of(truth: TruthSide, sources: Iterable[PredictedItem], rules: Rules, *, split: bool) -> Formulas:
    """The predictions in order; with `split`, each line of those that have several."""
    ordered = in_order(sources)
    if split:
        ordered = rules.split_items(ordered)
    return Formulas(truth, ordered, predicted_lines(ordered, "parity", rules))


def rows_of(pairs: Sequence[Pair], formulas: Formulas, bare: Callable[[str], str]) -> Iterator[MatchedSample]:
    """Samples as the official list has them; `bare` takes the delimiters off a formula."""
    for pair in pairs:
        line = formulas.truth.lines[pair.block]
        lines = [formulas.predicted[index] for index in pair.lines]
        first = lines[0].looked_up.item if lines else None
        yield MatchedSample(
            gt_idx=(pair.block,),
            pred_idx=pair.lines,
            gt=line.raw,
            pred=joined([each.raw for each in lines], bare),
            norm_gt=line.norm,
            norm_pred=formulas.norm(pair.lines),
            gt_category_type=line.category,
            pred_category_type="" if not lines else formulas.type(pair.lines[0]) if len(lines) == 1 else FORMULA,
            gt_position=(line.looked_up.order,),
            pred_position=first.start if first else None,
            gt_attribute=(line.looked_up.attribute,),
            edit=pair.distance,
            step="none" if not lines else "assignment" if len(lines) == 1 else "run merge",
            distance=pair.distance,
            anno_ids=(line.block.parts,),
            pieces=tuple(piece_of(each.source) for each in lines),
        )


def joined(raws: Sequence[str], bare: Callable[[str], str]) -> str:
    """One formula as it is, several as the rows of an array; if only one of them holds anything, that one."""
    if len(raws) < 2:
        return "".join(raws)
    parts = [part for raw in raws if (part := bare(raw))]
    return array_of(parts) if len(parts) > 1 else "".join(parts)
