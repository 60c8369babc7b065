"""The oracle pages of OmniDocBench as scored pages, so that aggregation is tested apart from matching."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch, ReadingOrder
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage

#: Of figures over pages; the sums are taken in another order than upstream's.
TOLERANCE = 1e-6


def page_of_samples(image: str, attributes: Mapping[str, Any], samples: Mapping[str, Any]) -> ScoredPage:
    """A page with the samples that the official evaluator made of it."""
    own = [each for each in samples["text_block"] if "equation" not in each["gt_category_type"]]
    moved = [each for each in samples["text_block"] if "equation" in each["gt_category_type"]]
    order = samples.get("reading_order")
    match = PageMatch(
        text_block=tuple(map(_matched, own)),
        formulas_as_text=tuple(map(_matched, moved)),
        display_formula=tuple(map(_matched, samples.get("display_formula", ()))),
        table=tuple(map(_matched, samples.get("table", ()))),
        reading_order=_order(order[0] if isinstance(order, list) else order) if order else None,
    )
    return ScoredPage(image=image, attributes=attributes, match=match)


def _order(sample: Mapping[str, Any]) -> ReadingOrder:
    return ReadingOrder(
        gt=tuple(sample["gt"]),
        pred=tuple(sample["pred"]),
        edit=sample["edit"],
        edit_num=sample["Edit_num"],
        upper_len=sample["upper_len"],
    )


def _matched(sample: Mapping[str, Any]) -> MatchedSample:
    latex_zeroed = sample["pred_idx"] == ""
    return MatchedSample(
        gt_idx=tuple(sample["gt_idx"]),
        pred_idx=() if sample["pred_idx"] in ("", [""]) else tuple(sample["pred_idx"]),
        gt=sample.get("gt", ""),
        pred=sample.get("pred", ""),
        norm_gt=sample["norm_gt"],
        norm_pred=sample["norm_pred"],
        gt_category_type=sample["gt_category_type"],
        pred_category_type=sample["pred_category_type"],
        gt_position=tuple(None if place == "" else place for place in sample["gt_position"]),
        pred_position=None if sample["pred_position"] == "" else sample["pred_position"],
        gt_attribute=tuple(sample["gt_attribute"]),
        edit=sample["edit"],
        edit_num=sample.get("Edit_num", 0),
        upper_len=sample["upper_len"],
        teds=sample["metric"].get("TEDS"),
        teds_structure_only=sample["metric"].get("TEDS_structure_only"),
        step="none",
        distance=0.0,
        latex_zeroed=latex_zeroed,
    )


def differences(ours: Any, expected: Any, place: str = "") -> list[str]:
    """Where two documents differ by more than 1e-6; NaN, upstream's own string "NaN" and None are the same."""
    if isinstance(expected, dict) and isinstance(ours, dict):
        missing = [f"{place}: {key} on one side only" for key in expected.keys() ^ ours.keys()]
        both = [
            each
            for key in expected.keys() & ours.keys()
            for each in differences(ours[key], expected[key], f"{place}/{key}")
        ]
        return missing + both
    if isinstance(expected, list | tuple) and isinstance(ours, list | tuple) and len(expected) == len(ours):
        pairs = enumerate(zip(ours, expected, strict=True))
        return [each for number, pair in pairs for each in differences(*pair, f"{place}/{number}")]
    if _not_a_number(ours) and _not_a_number(expected):
        return []
    if isinstance(ours, int | float) and isinstance(expected, int | float):
        return [] if abs(ours - expected) <= TOLERANCE else [f"{place}: {ours} is not {expected}"]
    return [] if ours == expected else [f"{place}: {ours!r:.200} is not {expected!r:.200}"]


def _not_a_number(value: Any) -> bool:
    return value is None or value == "NaN" or (isinstance(value, float) and math.isnan(value))
