"""Write the JSON files of the official evaluator, and compare small runs with its own (`loupe verify omnidocbench`)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidocbench.aggregation import (
    OFFICIAL_METRICS,
    ElementMetrics,
    metric_result,
    page_key,
    per_page_edit,
    run_summary,
    sample_metrics,
)
from loupe.benchmarks.omnidocbench.figures import RECKONING_1_5, Reckoning, cdm_prediction, cdm_reference
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.records import MatchedSample, ReadingOrder
from loupe.benchmarks.omnidocbench.scored_pages import (
    PageSample,
    ScoredPage,
    from_details,
    image_name,
    samples_by_element,
)
from loupe.types import Prediction, Sample, SampleScores, Scored


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


def compare_run(
    given: Mapping[str, Any],
    expected: Mapping[str, Any],
    score: Callable[[Sample, Prediction], Scored],
    reckoning: Reckoning,
) -> list[tuple[float, float]]:
    """(ours, official) for every number of a run; one that only one side has is infinitely far off.

    `expected` holds the official `metric_result`, or for every element the `samples`: edits, length, TEDS, TEDS-S.
    """
    whole = score_run(given, score, reckoning)
    computed = metric_result(whole, reckoning.metrics) if "metric_result" in expected else sample_numbers(whole)
    ours, official = dict(numbers(computed)), dict(numbers(expected.get("metric_result") or expected["samples"]))
    names = [*official, *(name for name in ours if name not in official)]
    return [(ours.get(name, math.inf), official.get(name, -math.inf)) for name in names]


def score_run(
    given: Mapping[str, Any], score: Callable[[Sample, Prediction], Scored], reckoning: Reckoning
) -> list[ScoredPage]:
    """The pages of a run, with `answers` by the names of images; one without is left out, or missing."""
    pages = []
    for page in given["pages"]:
        image = image_name(page["page_info"]["image_path"])
        if image in given["answers"] or reckoning.missing_is_empty:
            answer = given["answers"].get(image)
            prediction = Prediction(outcome="missing") if answer is None else Prediction(text=answer)
            scored = score(Sample(id=image, truth=page), prediction)
            pages.append(from_details(SampleScores(sample=image, details=dict(scored.details))))
    return [page for page in pages if page is not None]


def page_from_oracle(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A page of the oracle as a run; none where nothing on it is scored."""
    page, expected = case["input"]["gt_page"], case["expected"]
    elements = {name: samples for name, samples in expected.items() if name in OFFICIAL_METRICS}
    if "error" in expected or not any(elements.values()):
        return
    image = page["page_info"]["image_path"].rpartition("/")[2]
    yield {
        "id": case["id"],
        "input": {"pages": [page], "answers": {image: case["input"]["pred"]}},
        "expected": {"samples": {name: _official_rows(samples) for name, samples in elements.items()}},
    }


def _official_rows(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    rows = {}
    for number, sample in enumerate(samples):
        teds = [sample["metric"][name] for name in ("TEDS", "TEDS_structure_only") if name in sample["metric"]]
        rows[str(number)] = [sample["Edit_num"], sample["upper_len"], *teds]
    return rows


def sample_numbers(pages: Sequence[ScoredPage]) -> dict[str, dict[str, list[float]]]:
    """For each element its samples by number, each with all that is counted of it."""
    return {
        element: {str(number): _sample_row(sample) for number, sample in enumerate(samples)}
        for element, samples in samples_by_element(pages).items()
    }


def _sample_row(sample: PageSample) -> list[float]:
    matched = sample.matched
    row = [float(matched.edit_num), float(matched.upper_len)]
    if isinstance(matched, MatchedSample) and matched.teds is not None:
        row += [matched.teds, matched.teds_structure_only or 0.0]
    return row


def numbers(figures: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested document by its place; the string "NaN" is one, null is none."""
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            yield from numbers(value, f"{place}/{name}")
    elif isinstance(figures, list):
        for number, value in enumerate(figures):
            yield f"{place}/{number}", float(value)
    elif figures is not None:
        yield place, float(figures)
