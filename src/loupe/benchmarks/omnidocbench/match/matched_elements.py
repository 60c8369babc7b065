"""From groups of lines to the samples of the elements text_block, display_formula and reading_order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.match.leftovers import Group
from loupe.benchmarks.omnidocbench.match.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidocbench.records import MatchedSample, PredictedItem, piece_of
from loupe.benchmarks.omnidocbench.text.text_normalization import clean

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules

#: What a formula may be matched with and still be scored as a formula; "" stands for nothing.
_FORMULAS = ("equation_inline", "equation_isolated", "")


def in_match_order(sources: Iterable[PredictedItem]) -> list[PredictedItem]:
    """By place, and inline formulas last: all of these are in a text, too (#array-split)."""
    return sorted(sources, key=lambda source: (source.item.fine_category == "equation_inline", source.item.start))


def sample_of(
    group: Group, truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], rules: Rules
) -> MatchedSample:
    """One sample: texts joined without separator, everything else looked up as upstream does it."""
    blocks = [truth[index] for index in group.blocks]
    lines = [predicted[index] for index in group.key]
    category = Counter(line.category for line in blocks).most_common(1)[0][0]
    pred_category = lines[0].category if lines else ""
    joined = _joiner(rules, as_array=category == FORMULA and len(blocks) > 1)
    pred_joined = _joiner(rules, as_array="equation" in pred_category and len(lines) > 1)
    return MatchedSample(
        gt_idx=group.blocks,
        pred_idx=group.key,
        gt=joined([line.raw for line in blocks]),
        pred=pred_joined([line.raw for line in lines]),
        norm_gt="".join(line.norm for line in blocks),
        norm_pred="".join(line.norm for line in lines),
        gt_category_type=category,
        pred_category_type=pred_category,
        gt_position=tuple(line.looked_up.order or None for line in blocks),
        pred_position=lines[0].looked_up.item.start if lines else None,
        gt_attribute=tuple(line.looked_up.attribute for line in blocks),
        edit=group.edit,
        step=group.step,
        distance=group.distance,
        anno_ids=tuple(line.block.parts for line in blocks),
        pieces=tuple(piece_of(line.source) for line in lines),
    )


def _joiner(rules: Rules, *, as_array: bool) -> Callable[[Iterable[str]], str]:
    """How several raw texts become one: texts without separator, formulas as the rows of one array."""
    return (lambda raws: array_of(map(rules.bare_formula, raws))) if as_array else "".join


def array_of(formulas: Iterable[str]) -> str:
    """Formulas as the rows of one array."""
    rows = " \\\\ ".join(f"{{{formula}}}" for formula in formulas)
    return f"\\begin{{array}}{{l}} {rows} \\end{{array}}"


def is_formula_as_text(sample: MatchedSample) -> bool:
    """Whether a formula was matched with text or code: then it is scored with the text (#samples)."""
    return sample.pred_category_type not in _FORMULAS


def as_text(sample: MatchedSample, rules: Rules) -> tuple[MatchedSample, str]:
    """A formula as it is scored among the texts: its ground truth as plain characters, the prediction as it is.

    And what ends upstream when it makes a text of this formula, where it catches nothing; "" where that succeeds.
    """
    found = rules.latex_to_text(sample.gt)
    gt = sample.gt if found.text is None else found.text
    end_of_upstream = "no end" if sample.gt.endswith("\\") else found.error
    return replace(sample, gt=gt, norm_gt=clean(gt)), end_of_upstream


def reading_orders(samples: Iterable[MatchedSample]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The orders of all blocks that have one: sorted, and as the positions of their predictions put them."""
    with_order = [sample for sample in samples if sample.gt_position != (None,)]
    placed = [(sample.pred_position, sample) for sample in with_order if sample.pred_position is not None]
    placed.sort(key=lambda pair: pair[0])
    return (
        tuple(sorted(order for sample in with_order for order in sample.gt_position if order)),
        tuple(order for _, sample in placed for order in sample.gt_position if order),
    )
