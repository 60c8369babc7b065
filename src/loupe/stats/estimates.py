"""Values with 95 % intervals: bootstrap over clusters, 2,000 draws, fixed seed. Method: docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from loupe.stats.bootstrap import DRAWS, Resampled, interval, resample
from loupe.stats.clusters import Floats, Row, sort_into_clusters
from loupe.types import Estimate, Measure, Values


def estimate(
    measures: Sequence[Measure],
    rows: Sequence[Row],
    *,
    summarize: Callable[[Values], Values] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    intervals: bool = True,
) -> dict[str, Estimate]:
    """Every declared measure with its interval, whatever the order of the rows; each row is (cluster, score).

    All scores of a cluster are drawn together. `n` counts the scores of a measure, for a composite the clusters.
    A measure without scores, or whose value is not finite, has value None; one with scores of a single cluster has no
    interval, nor has one that is the same in all draws, unless it is a share of 0 or 1 (`is_share`). Scores of measures
    that are not declared are ignored. `summarize` sees the measures that have scores; others read as nan. Raises
    ValueError if counts and measure do not fit together.
    """
    scores = sort_into_clusters(rows, [measure.name for measure in measures])
    found = resample(measures, scores, summarize=summarize, draws=draws if intervals else 0, seed=seed)
    results = {}
    for measure in measures:
        of_measure = scores.measures.get(measure.name)
        n = len(scores.labels) if of_measure is None else len(of_measure.counts)
        share = of_measure is not None and is_share(measure) and is_all_or_nothing(of_measure.counts)
        results[measure.name] = _estimate(found.get(measure.name), n, share=share)
    return results


def is_all_or_nothing(counts: Floats) -> bool:
    """Whether shares are 0 or 1 by what was counted, and not because a benchmark's rule makes them so."""
    earned, most = counts.sum(axis=0)
    return bool(earned in (0.0, most))


def is_share(measure: Measure) -> bool:
    """Whether a measure lies between 0 and 1 on every cluster; error rates may pass 1, other functions anything."""
    return measure.value is None and measure.unit == "fraction" and measure.higher_is_better


def _estimate(values: Resampled | None, n: int, *, share: bool) -> Estimate:
    if values is None:
        return Estimate(value=None)
    if not math.isfinite(values.point):
        return Estimate(value=None, n=n)
    ends = interval(values, share=share) if values.draws.size else None
    low, high = ends or (None, None)
    return Estimate(value=values.point, low=low, high=high, n=n)
