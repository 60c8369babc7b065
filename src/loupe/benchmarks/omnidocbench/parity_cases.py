"""Small runs against what the official evaluator made of them (`loupe verify omnidocbench`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidocbench.data.prediction_files import image_name
from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scores.aggregation import OFFICIAL_METRICS, metric_result
from loupe.benchmarks.omnidocbench.scores.reckoning import Reckoning
from loupe.benchmarks.omnidocbench.scores.scored_pages import PageSample, ScoredPage, from_details, samples_by_element
from loupe.types import Prediction, Sample, SampleScores, Scored


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
