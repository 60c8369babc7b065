"""Small runs against what the official evaluator made of them (`loupe verify omnidocbench`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidoc.aggregation import metric_result
from loupe.benchmarks.omnidoc.prediction_files import image_name
from loupe.benchmarks.omnidoc.records import MatchedSample
from loupe.benchmarks.omnidoc.scored_pages import PageSample, ScoredPage, from_details, samples_by_element
from loupe.types import Prediction, Sample, SampleScores, Scored


def compare_run(
    given: Mapping[str, Any], expected: Mapping[str, Any], score: Callable[[Sample, Prediction], Scored]
) -> list[tuple[float, float]]:
    """(ours, official) for every number of a run; one that only one side has is infinitely far off.

    `expected` holds the official `metric_result`, or for every element the `samples`: edits, length, TEDS, TEDS-S.
    """
    pages = []
    for page in given["pages"]:
        image = image_name(page["page_info"]["image_path"])
        if image in given["answers"]:
            scored = score(Sample(id=image, truth=page), Prediction(text=given["answers"][image]))
            pages.append(from_details(SampleScores(sample=image, details=dict(scored.details))))
    whole = [page for page in pages if page is not None]
    computed = metric_result(whole) if "metric_result" in expected else _sample_numbers(whole)
    ours, official = dict(_numbers(computed)), dict(_numbers(expected.get("metric_result") or expected["samples"]))
    names = [*official, *(name for name in ours if name not in official)]
    return [(ours.get(name, math.inf), official.get(name, -math.inf)) for name in names]


def _sample_numbers(pages: Sequence[ScoredPage]) -> dict[str, dict[str, list[float]]]:
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


def _numbers(figures: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested document by its place; the string "NaN" is one."""
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            yield from _numbers(value, f"{place}/{name}")
    elif isinstance(figures, list):
        for number, value in enumerate(figures):
            yield f"{place}/{number}", float(value)
    else:
        yield place, float(figures)
