"""Text that was matched with a formula, or a formula with text: both sides are compared as text (1.6).

Protocol: docs/protocols/omnidocbench_v16.md#cross-category.
"""

from __future__ import annotations

from dataclasses import replace

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.text.formula_delimiters import without_delimiters
from loupe.benchmarks.omnidocbench.text.guarded_text_normalization import (
    guarded_formulas_to_unicode,
    normalize_guarded_text,
)
from loupe.metrics import normalized_edit_distance

_FORMULAS = (FORMULA, "equation_inline")


def compared_as_text(sample: MatchedSample) -> MatchedSample:
    """The sample as it is, unless just one side of it is a formula."""
    categories = sample.gt_category_type, sample.pred_category_type
    if not all(categories) or sum(category in _FORMULAS for category in categories) != 1:
        return sample
    gt = rendered(categories[0], sample.gt)
    pred = rendered(categories[1], sample.pred)
    norm_gt, norm_pred = normalize_guarded_text(gt), normalize_guarded_text(pred)
    edit = normalized_edit_distance(norm_pred, norm_gt)
    return replace(sample, gt=gt, pred=pred, norm_gt=norm_gt, norm_pred=norm_pred, edit=edit)


def rendered(category: str, content: str) -> str:
    """Text with its inline formulas as characters; a formula without its delimiters the same way."""
    return guarded_formulas_to_unicode(without_delimiters(content) if category in _FORMULAS else content)
