"""Values with 95 % intervals: bootstrap over clusters, 2,000 draws, fixed seed. Method: docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from loupe.stats.bootstrap import DRAWS, Resampled, interval, resample
from loupe.stats.clusters import Row, sort_into_clusters
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
    interval. Scores of measures that are not declared are ignored. `summarize` sees the measures that have scores;
    others read as nan. Raises ValueError if counts and measure do not fit together.
    """
    scores = sort_into_clusters(rows, [measure.name for measure in measures])
    found = resample(measures, scores, summarize=summarize, draws=draws if intervals else 0, seed=seed)
    results = {}
    for measure in measures:
        of_measure = scores.measures.get(measure.name)
        n = len(scores.labels) if of_measure is None else len(of_measure.counts)
        results[measure.name] = _estimate(found.get(measure.name), n, fraction=measure.unit == "fraction")
    return results


def _estimate(values: Resampled | None, n: int, *, fraction: bool) -> Estimate:
    if values is None:
        return Estimate(value=None)
    if not math.isfinite(values.point):
        return Estimate(value=None, n=n)
    ends = interval(values, fraction=fraction) if values.draws.size else None
    low, high = ends or (None, None)
    return Estimate(value=values.point, low=low, high=high, n=n)
