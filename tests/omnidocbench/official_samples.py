"""The samples of a page as the official evaluator writes them, to be held against its own."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch

TOLERANCE = 1e-9


def assert_official(match: PageMatch, expected: dict[str, Any], *, whole_run: bool = False) -> None:
    ours = as_official(match, texts_elsewhere=not whole_run)
    for element, samples in expected.items():
        assert len(ours[element]) == len(samples), element
        for row, sample in zip(ours[element], samples, strict=True):
            assert row == approximately(sample)


def approximately(value: Any) -> Any:
    """The same with floats as close as the tolerance; everything else exact."""
    if isinstance(value, dict):
        return {key: approximately(part) for key, part in value.items()}
    return pytest.approx(value, abs=TOLERANCE, rel=0) if isinstance(value, float) else value


def as_official(match: PageMatch, *, texts_elsewhere: bool) -> dict[str, list[dict[str, Any]]]:
    """What the oracles hold. Formulas scored as text follow the texts, if the run has any text.

    Protocol: docs/protocols/omnidocbench.md#samples.
    """
    has_texts = texts_elsewhere or bool(match.text_block)
    return {
        "text_block": [*map(row_of, (*match.text_block, *(match.formulas_as_text if has_texts else ())))],
        "display_formula": [{**row_of(each), "gt": each.gt, "pred": each.pred} for each in match.display_formula],
        "table": [with_teds(each) for each in match.table],
        "reading_order": [order_of(match)] if match.reading_order else [],
    }


def row_of(sample: MatchedSample) -> dict[str, Any]:
    return {
        "gt_idx": list(sample.gt_idx),
        "pred_idx": "" if sample.latex_zeroed else list(sample.pred_idx) or [""],
        "gt_position": ["" if order is None else order for order in sample.gt_position],
        "pred_position": "" if sample.pred_position is None else sample.pred_position,
        "gt_category_type": sample.gt_category_type,
        "pred_category_type": sample.pred_category_type,
        "gt_attribute": list(sample.gt_attribute),
        "edit": sample.edit,
        "metric": {"Edit_dist": sample.edit_num / sample.upper_len},
        "Edit_num": sample.edit_num,
        "upper_len": sample.upper_len,
        "norm_gt": sample.norm_gt,
        "norm_pred": sample.norm_pred,
        "gt_sha256_16": hashlib.sha256(sample.gt.encode()).hexdigest()[:16],
        "pred_sha256_16": hashlib.sha256(sample.pred.encode()).hexdigest()[:16],
    }


def with_teds(sample: MatchedSample) -> dict[str, Any]:
    row = row_of(sample)
    row["metric"] |= {"TEDS": sample.teds, "TEDS_structure_only": sample.teds_structure_only}
    return row


def order_of(match: PageMatch) -> dict[str, Any]:
    order = match.reading_order
    assert order
    return {
        "gt": list(order.gt),
        "pred": list(order.pred),
        "edit": order.edit,
        "metric": {"Edit_dist": order.edit_num / order.upper_len},
        "Edit_num": order.edit_num,
        "upper_len": order.upper_len,
    }
