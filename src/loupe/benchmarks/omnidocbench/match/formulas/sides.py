"""The formulas of both sides of a page, as lines that are held against each other.

Protocol: docs/protocols/omnidocbench_v16.md#second-match.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.extract.formula_rescue import RESCUED
from loupe.benchmarks.omnidocbench.match.lines import PredictedLine, TruthLine, predicted_lines
from loupe.benchmarks.omnidocbench.match.matched_elements import array_of
from loupe.benchmarks.omnidocbench.records import Item, MatchedSample, PredictedItem, piece_of

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.match.distances import Distances
    from loupe.benchmarks.omnidocbench.rules import Rules
    from loupe.benchmarks.omnidocbench.work import Work

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
        """What is compared of several lines: joined by blanks, none of which is in a formula."""
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
