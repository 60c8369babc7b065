"""Values with 95 % intervals: exact for right and wrong answers, else a bootstrap over clusters with a fixed seed.

Method: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import CONFIDENCE, Resampled, can_vary, interval, resample
from loupe.stats.bounds_of_unread import Contributions, few_carry
from loupe.stats.clusters import Clustered, Floats, MeasureRows, Row, sort_into_clusters
from loupe.stats.proportions import exact_interval
from loupe.types import Estimate, Measure

#: A part of a run (a slice, a tag, a label) over fewer clusters has no interval: it would span most of the scale.
FEWEST_OF_PART = 6


def estimate(analysis: Analysis, rows: Iterable[Row], *, fewest: int = 2) -> dict[str, Estimate]:
    """Every measure of the analysis with its interval, whatever the order of the rows; each row is (cluster, score).

    All scores of a cluster are drawn together. `n` counts the scores of a measure, for a composite the clusters.
    A measure without scores, or whose value is not finite, has value None. One with scores of fewer than `fewest`
    clusters has no interval, nor has one that is the same in all draws, unless its clusters are all right or wrong.
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
        answers = None if of_measure is None else right_or_wrong(measure, of_measure)
        results[measure.name] = _estimate(measure, found.get(measure.name), n, answers, fewest=fewest)
    return results


def right_or_wrong(measure: Measure, rows: MeasureRows) -> Contributions | None:
    """Return how much each cluster has right, less a half, if every cluster is right or wrong altogether.

    None for measures that are no shares (`is_share`), and if a cluster is right in part.
    """
    if not is_share(measure):
        return None
    earned, most = rows.sums(int(rows.cluster[-1]) + 1).T
    total = float(most.sum())
    if total <= 0 or not ((earned == 0) | (earned == most)).all():
        return None
    return Contributions((earned - most / 2) / total, most / total, 0.5)


def interval_of(values: Resampled, answers: Contributions | None) -> tuple[float, float] | None:
    """Return the 95 % interval of a measure: exact if its value is the share of `answers`, else the bootstrap's.

    `answers` are clusters that are right or wrong altogether, less a half (`right_or_wrong`). Those of one size have
    the interval of Clopper and Pearson, others `Contributions.ends`.
    """
    if answers is None or not can_vary(values):
        return interval(values)
    if not math.isclose(0.5 + answers.apart.sum(), values.point, abs_tol=1e-9):
        return interval(values)  # the evaluator made it something else
    sizes = answers.weights[answers.weights > 0]
    if math.isclose(sizes.min(), sizes.max()):
        return exact_interval(int(np.count_nonzero(answers.apart > 0)), sizes.size)
    low, high = answers.ends(1 - CONFIDENCE)
    return max(low + 0.5, 0.0), min(high + 0.5, 1.0)


def is_share(measure: Measure) -> bool:
    """Whether a measure lies between 0 and 1 on every cluster; error rates may pass 1, other functions anything."""
    return measure.value is None and measure.unit == "fraction" and measure.higher_is_better


def _estimate(
    measure: Measure, values: Resampled | None, n: int, answers: Contributions | None, *, fewest: int
) -> Estimate:
    if values is None:
        return Estimate(value=None)
    if not math.isfinite(values.point):
        return Estimate(value=None, n=n)
    ends = interval_of(values, answers) if values.draws.size and values.clusters >= fewest else None
    if ends is None:
        return Estimate(value=values.point, n=n)
    # An exact interval is long enough.
    few = answers is None and few_carry(_losses(measure, values))
    return Estimate(value=values.point, low=ends[0], high=ends[1], n=n, few_carry_error=few)


def _losses(measure: Measure, values: Resampled) -> Floats:
    """Return what each cluster adds to the error, for every kind of measure: by how much it moves it, and its part.

    None of a measure without a perfect value. Clusters that do not move a measure do not have it.
    """
    if measure.unit == "number" and not measure.bounded:
        return np.zeros(0)
    error = 1 - values.point if measure.higher_is_better else values.point
    moves = measure.merit(1.0) * (values.left_out - values.point)
    moves = moves[np.isfinite(moves) & (moves != 0)]
    losses: Floats = moves + error / max(moves.size, 1)
    return losses
