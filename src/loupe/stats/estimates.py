"""Values with 95 % intervals: bootstrap over clusters, 2,000 draws, fixed seed. Method: docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Iterable

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import Resampled, interval, resample
from loupe.stats.clusters import Clustered, Floats, Row, sort_into_clusters
from loupe.types import Estimate, Measure

#: A part of a run (a slice, a tag, a label) over fewer clusters has no interval: it would span most of the scale.
FEWEST_OF_PART = 6


def estimate(analysis: Analysis, rows: Iterable[Row], *, fewest: int = 2) -> dict[str, Estimate]:
    """Every measure of the analysis with its interval, whatever the order of the rows; each row is (cluster, score).

    All scores of a cluster are drawn together. `n` counts the scores of a measure, for a composite the clusters.
    A measure without scores, or whose value is not finite, has value None. One with scores of fewer than `fewest`
    clusters has no interval, nor has one that is the same in all draws, unless it is a share of 0 or 1 (`is_share`).
    Scores of measures that are no part of the analysis are ignored. Raises ValueError if counts and measure do not fit
    together.
    """
    return estimate_clustered(analysis, sort_into_clusters(rows, analysis.names), fewest=fewest)


def estimate_clustered(analysis: Analysis, scores: Clustered, *, fewest: int = 2) -> dict[str, Estimate]:
    """Estimate scores that are in clusters already, as `estimate` does."""
    found = resample(analysis, scores)
    results = {}
    for measure in analysis.measures:
        of_measure = scores.measures.get(measure.name)
        n = len(scores.labels) if of_measure is None else len(of_measure.counts)
        share = of_measure is not None and is_share(measure) and is_all_or_nothing(of_measure.counts)
        results[measure.name] = _estimate(found.get(measure.name), n, share=share, fewest=fewest)
    return results


def is_all_or_nothing(counts: Floats) -> bool:
    """Whether shares are 0 or 1 by what was counted, and not because a benchmark's rule makes them so."""
    earned, most = counts.sum(axis=0)
    return bool(earned in (0.0, most))


def is_share(measure: Measure) -> bool:
    """Whether a measure lies between 0 and 1 on every cluster; error rates may pass 1, other functions anything."""
    return measure.value is None and measure.unit == "fraction" and measure.higher_is_better


def _estimate(values: Resampled | None, n: int, *, share: bool, fewest: int) -> Estimate:
    if values is None:
        return Estimate(value=None)
    if not math.isfinite(values.point):
        return Estimate(value=None, n=n)
    ends = interval(values, share=share) if values.draws.size and values.clusters >= fewest else None
    low, high = ends or (None, None)
    return Estimate(value=values.point, low=low, high=high, n=n)
