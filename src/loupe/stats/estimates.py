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
from loupe.stats.clusters import Clustered, MeasureRows, Row, sort_into_clusters
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
        results[measure.name] = _estimate(measure, found.get(measure.name), n, of_measure, fewest=fewest)
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


def interval_of(
    measure: Measure, values: Resampled, rows: MeasureRows | None
) -> tuple[tuple[float, float] | None, bool]:
    """Return the 95 % interval of a measure, and whether few clusters carry most of its error.

    If few do, its worse end allows for an unread cluster that fails altogether. Clusters that are right or wrong
    altogether have an exact interval, which does so anyhow. `rows` are None for composites.
    """
    answers = None if rows is None or not can_vary(values) else right_or_wrong(measure, rows)
    # If they differ, the evaluator made it something else.
    if answers is not None and math.isclose(0.5 + answers.apart.sum(), values.point, abs_tol=1e-9):
        return _exact(answers), False
    ends, losses = interval(values), _losses(measure, values)
    if ends is None or losses is None or not few_carry(losses.apart[losses.weights > 0]):
        return ends, False
    (low, high), error = ends, losses.upper_end(1 - CONFIDENCE)
    if measure.higher_is_better:
        return (min(low, max(1 - error, values.bounds[0])), high), True
    return (low, max(high, min(error, values.bounds[1]))), True


def _exact(answers: Contributions) -> tuple[float, float] | None:
    """Return the interval of Clopper and Pearson, or `Contributions.ends` if clusters differ in size."""
    sizes = answers.weights[answers.weights > 0]
    if math.isclose(sizes.min(), sizes.max()):
        return exact_interval(int(np.count_nonzero(answers.apart > 0)), sizes.size)
    low, high = answers.ends(1 - CONFIDENCE)
    return max(low + 0.5, 0.0), min(high + 0.5, 1.0)


def is_share(measure: Measure) -> bool:
    """Whether a measure lies between 0 and 1 on every cluster; error rates may pass 1, other functions anything."""
    return measure.value is None and measure.unit == "fraction" and measure.higher_is_better


def _estimate(measure: Measure, values: Resampled | None, n: int, rows: MeasureRows | None, *, fewest: int) -> Estimate:
    if values is None:
        return Estimate(value=None)
    if not math.isfinite(values.point):
        return Estimate(value=None, n=n)
    if not values.draws.size or values.clusters < fewest:
        return Estimate(value=values.point, n=n)
    ends, few = interval_of(measure, values, rows)
    if ends is None:
        return Estimate(value=values.point, n=n)
    return Estimate(value=values.point, low=ends[0], high=ends[1], n=n, few_carry_error=few)


def _losses(measure: Measure, values: Resampled) -> Contributions | None:
    """Return what each cluster adds to the error, for every kind of measure: by how much it moves it, and its part.

    None for a measure without a perfect value.
    """
    if measure.unit == "count" or (measure.unit == "number" and not measure.bounded):
        return None
    error = 1 - values.point if measure.higher_is_better else values.point
    moves = np.nan_to_num(measure.merit(1.0) * (values.left_out - values.point))
    # Exact for ratios.
    losses = error * values.weights + moves * (1 - values.weights)
    losses += (error - losses.sum()) * values.weights
    return Contributions(losses, values.weights, values.possible)
