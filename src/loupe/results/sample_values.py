"""The measures of one sample alone, for colours and for the numbers beside its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from loupe.results.sections import format_value
from loupe.types import Measure, Score, Values

Summarize = Callable[[Values], Values]


def sample_values(
    measures: Sequence[Measure], scores: Iterable[Score], summarize: Summarize | None = None
) -> dict[str, float]:
    """Each measure that these scores say something about, as a number; what cannot be computed is left out."""
    rows: dict[str, list[tuple[float, ...]]] = {}
    for score in scores:
        rows.setdefault(score.measure, []).append(score.counts)
    found = {measure.name: _value(measure, rows[measure.name]) for measure in measures if measure.name in rows}
    if summarize is not None:
        whole = {measure.name: math.nan for measure in measures} | found
        found |= {name: float(value) for name, value in summarize(dict(whole)).items()}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _value(measure: Measure, rows: Sequence[Sequence[float]]) -> float:
    with np.errstate(all="ignore"):
        counts = np.asarray(rows, dtype=np.float64)
        if measure.pooled and measure.value is not None:
            return float(measure.value(counts))
        sums = counts.sum(axis=0)
        if measure.value is not None:
            return float(measure.value(sums))
        return float(sums[0] / sums[1]) if len(sums) == 2 and sums[1] else math.nan


def shown_values(measures: Sequence[Measure], values: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """The values in the order of the measures, as the report stores them."""
    for measure in measures:
        if measure.name in values:
            value = values[measure.name]
            yield {"name": measure.name, "value": value, "text": format_value(value, measure.unit)}
