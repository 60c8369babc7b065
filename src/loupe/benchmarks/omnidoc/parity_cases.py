"""Small runs against what the official evaluator made of them (`loupe verify omnidocbench`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loupe.benchmarks.omnidoc.aggregation import metric_result
from loupe.benchmarks.omnidoc.prediction_files import image_name
from loupe.benchmarks.omnidoc.scored_pages import from_details
from loupe.types import Prediction, Sample, SampleScores, Scored


def compare_run(
    given: Mapping[str, Any], expected: Mapping[str, Any], score: Callable[[Sample, Prediction], Scored]
) -> list[tuple[float, float]]:
    """(ours, official) for every figure of a run; one that only one side has is infinitely far off."""
    pages = []
    for page in given["pages"]:
        image = image_name(page["page_info"]["image_path"])
        if image in given["answers"]:
            scored = score(Sample(id=image, truth=page), Prediction(text=given["answers"][image]))
            pages.append(from_details(SampleScores(sample=image, details=dict(scored.details))))
    ours = dict(_numbers(metric_result([page for page in pages if page is not None])))
    official = dict(_numbers(expected["metric_result"]))
    names = [*official, *(name for name in ours if name not in official)]
    return [(ours.get(name, math.inf), official.get(name, -math.inf)) for name in names]


def _numbers(figures: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested document by its place; the string "NaN" is one."""
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            yield from _numbers(value, f"{place}/{name}")
    else:
        yield place, float(figures)
