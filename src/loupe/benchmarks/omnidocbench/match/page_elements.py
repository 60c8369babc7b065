"""From the samples of the mixed match to those of the elements: what each version does with texts and formulas.

Protocol: docs/protocols/omnidocbench.md#samples; docs/protocols/omnidocbench_v16.md#after-the-match.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA, IGNORED, TEXTS, GroundTruth
from loupe.benchmarks.omnidocbench.match.formulas.candidates import Candidate, choose
from loupe.benchmarks.omnidocbench.match.formulas.sides import pool_of
from loupe.benchmarks.omnidocbench.match.matched_elements import as_text, is_formula_as_text
from loupe.benchmarks.omnidocbench.match.text_categories import compared_as_text
from loupe.benchmarks.omnidocbench.match.text_spans import with_local_spans
from loupe.benchmarks.omnidocbench.records import Block, Item, MatchedSample, PredictedItem, piece_of
from loupe.benchmarks.omnidocbench.work import TooMuchWorkError, Work

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.match.lines import PredictedLine
    from loupe.benchmarks.omnidocbench.rules import Rules

_SCORED_TEXTS: Final = tuple(category for category in TEXTS if category not in IGNORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedMatch:
    """What was matched together. `sources` are the predictions in the order of the match, neither split nor filtered.

    `ignored` are the samples of blocks that take their predictions before the match proper.
    """

    ground_truth: GroundTruth
    items: Sequence[Item]
    sources: Sequence[PredictedItem]
    predicted: Sequence[PredictedLine]
    samples: Sequence[MatchedSample]
    ignored: Sequence[MatchedSample]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """Samples of texts and formulas; `formula_choice` names the way in which formulas were paired, where several are
    tried."""

    texts: Sequence[MatchedSample]
    formulas: Sequence[MatchedSample]
    formulas_as_text: Sequence[MatchedSample] = ()
    formula_choice: str = ""
    #: Whether the ways to pair formulas were too many to try.
    given_up: bool = False
    upstream_error: str = ""
    #: The indices of the predicted lines that are in a sample of any element.
    scored_lines: Set[int] = frozenset()


def of_mixed_match(mixed: MixedMatch, rules: Rules) -> Elements:
    """As matched; formulas that were matched to text are scored as text (1.5)."""
    formulas = [sample for sample in mixed.samples if sample.gt_category_type == FORMULA]
    with_text = [as_text(sample, rules) for sample in formulas if is_formula_as_text(sample)]
    return Elements(
        texts=_texts(mixed.samples),
        formulas=[sample for sample in formulas if not is_formula_as_text(sample)],
        formulas_as_text=[sample for sample, _ in with_text],
        upstream_error=next((error for _, error in with_text if error), ""),
        scored_lines={
            index for sample in mixed.samples if sample.gt_category_type not in IGNORED for index in sample.pred_idx
        },
    )


def of_formulas_matched_again(mixed: MixedMatch, rules: Rules) -> Elements:
    """Badly matched texts are looked for in what stands near them, and formulas are matched alone (1.6)."""
    samples = [compared_as_text(sample) for sample in (*mixed.samples, *mixed.ignored)]
    samples = with_local_spans(samples, mixed.sources)
    current = [sample for sample in samples if sample.gt_category_type == FORMULA]
    blocks, pool = mixed.ground_truth.formulas(), pool_of(mixed.items)
    chosen, given_up = _chosen(blocks, pool, current, rules, mixed.work)
    texts, formulas = _texts(samples), current if given_up else chosen.rows() if chosen else ()
    return Elements(
        texts=texts,
        formulas=formulas,
        formula_choice=chosen.name if chosen else "",
        given_up=given_up,
        scored_lines=_scored_lines(mixed.predicted, texts, formulas),
    )


def _chosen(
    blocks: Sequence[Block],
    pool: Sequence[PredictedItem],
    current: Sequence[MatchedSample],
    rules: Rules,
    work: Work,
) -> tuple[Candidate | None, bool]:
    """How formulas are paired, None where there are none; and whether finding that out was given up."""
    if not blocks and not pool:
        return None, False
    try:
        return choose(blocks, pool, current, rules, work), False
    except TooMuchWorkError:
        return None, True


def _scored_lines(
    predicted: Sequence[PredictedLine], texts: Sequence[MatchedSample], formulas: Sequence[MatchedSample]
) -> set[int]:
    """Lines that are in a sample, or a part of whose item is in one as a formula: those are parted otherwise."""
    pieces = {piece for sample in texts for piece in sample.pieces}
    items = {piece.item for sample in formulas for piece in sample.pieces}
    return {
        index for index, line in enumerate(predicted) if line.source.index in items or piece_of(line.source) in pieces
    }


def _texts(samples: Sequence[MatchedSample]) -> list[MatchedSample]:
    return [sample for sample in samples if sample.gt_category_type in _SCORED_TEXTS]
