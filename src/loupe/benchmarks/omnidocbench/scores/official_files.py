"""The JSON files that the official evaluator writes into `result/`.

Protocol: docs/protocols/omnidocbench.md#files, #samples and #metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.records import MatchedSample, ReadingOrder
from loupe.benchmarks.omnidocbench.scores.aggregation import (
    ElementMetrics,
    metric_result,
    page_key,
    per_page_edit,
    sample_metrics,
)
from loupe.benchmarks.omnidocbench.scores.cdm_files import cdm_prediction, cdm_reference
from loupe.benchmarks.omnidocbench.scores.reckoning import RECKONING_1_5, Reckoning
from loupe.benchmarks.omnidocbench.scores.run_summary import run_summary
from loupe.benchmarks.omnidocbench.scores.scored_pages import PageSample, ScoredPage, samples_by_element


def official_files(
    pages: Sequence[ScoredPage],
    prefix: str,
    reckoning: Reckoning = RECKONING_1_5,
    metrics: Mapping[str, ElementMetrics] | None = None,
) -> Iterator[tuple[str, str]]:
    """Name and text of each file; values that cannot be computed are a bare NaN, as upstream writes them.

    `metrics` are those of a configuration that is not the version's own.
    """
    metrics = metrics or reckoning.metrics
    result = metric_result(pages, metrics)
    samples = samples_by_element(pages)
    for element, wanted in metrics.items():
        of_element = samples[element]
        records = [
            _with_cdm_fields(official_sample(sample, wanted), sample.matched, reckoning) for sample in of_element
        ]
        if "TEDS" in wanted.metric:
            yield f"{prefix}_{element}_per_table_TEDS.json", as_json(_per_table(records))
        if "Edit_dist" in wanted.metric and of_element:
            yield f"{prefix}_{element}_per_page_edit.json", as_json(per_page_edit(of_element))
        if "CDM_plain" in wanted.metric:
            yield f"{prefix}_{element}_formula.json", as_json(_cdm_plain(records))
        yield f"{prefix}_{element}_result.json", as_json(records)
    yield f"{prefix}_metric_result.json", as_json(result)
    if reckoning.summary:
        yield f"{prefix}_run_summary.json", as_json(run_summary(pages, metrics, result))


def official_sample(sample: PageSample, wanted: ElementMetrics) -> dict[str, Any]:
    """One sample with upstream's names and its ways to say "nothing"."""
    matched, image = sample.matched, sample.page.image
    record = _order_record(matched, image) if isinstance(matched, ReadingOrder) else _matched_record(matched, image)
    values = sample_metrics(sample, wanted)
    if "Edit_dist" in wanted.metric:
        record |= {"image_name": page_key(image), "upper_len": matched.upper_len}
    record |= {"metric": values} if values else {}
    return record | ({"Edit_num": matched.edit_num} if "Edit_dist" in values else {})


def _with_cdm_fields(
    record: dict[str, Any], matched: MatchedSample | ReadingOrder, reckoning: Reckoning
) -> dict[str, Any]:
    """The record of a formula with what the version prepares for CDM; any other as it is."""
    if not isinstance(matched, MatchedSample) or matched.gt_category_type != FORMULA:
        return record
    return record | reckoning.cdm_fields(matched.gt, matched.pred)


def _matched_record(matched: MatchedSample, image: str) -> dict[str, Any]:
    return {
        "gt_idx": list(matched.gt_idx),
        "gt": matched.gt,
        "pred_idx": "" if matched.latex_zeroed else list(matched.pred_idx) or [""],
        "pred": matched.pred,
        "edit": matched.edit,
        "gt_position": [_place(position) for position in matched.gt_position],
        "pred_position": _place(matched.pred_position),
        "norm_gt": matched.norm_gt,
        "norm_pred": matched.norm_pred,
        "gt_category_type": matched.gt_category_type,
        "pred_category_type": matched.pred_category_type,
        "gt_attribute": [dict(attribute) for attribute in matched.gt_attribute],
        "img_id": image,
    }


def _order_record(order: ReadingOrder, image: str) -> dict[str, Any]:
    return {
        "gt": [_place(each) for each in order.gt],
        "pred": [_place(each) for each in order.pred],
        "img_id": image,
        "edit": order.edit,
    }


def _place(position: float | None) -> float | str:
    """Whole numbers without a decimal point; upstream says "" for nothing."""
    if position is None:
        return ""
    return int(position) if position == int(position) else position


def _per_table(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By image and ground-truth index; of several tables with the same key the last one stays, as upstream."""
    return {
        f"{record['img_id']}_{record['gt_idx']}": {
            name: record["metric"][name] for name in ("TEDS", "TEDS_structure_only")
        }
        for record in records
    }


def _cdm_plain(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The formulas for an evaluation of CDM elsewhere."""
    return [
        {
            **record,
            "gt": cdm_reference(record["gt"]),
            "pred": cdm_prediction(record["pred"]),
            "img_name": record["img_id"],
            "img_id": str(number),
        }
        for number, record in enumerate(records)
    ]


def as_json(document: Any) -> str:
    """The text of an official file; names and texts in their own script, and NaN where there is no number."""
    return json.dumps(document, indent=4, ensure_ascii=False)
