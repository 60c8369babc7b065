"""The bootstrap over clusters, and the interval that its draws give.

Sources: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987): percentiles shifted by the acceleration, so
that both ends miss equally often when few pages are far worse than the rest; T. Hesterberg, "What teachers should know
about the bootstrap", The American Statistician 69 (2015): percentiles expanded to Student's t for small samples.
The bias term of Efron is set to the acceleration, its value for a mean, which spares the noise of estimating it.
Draws of a few clusters cannot reach far enough: n clusters lie all on one side of their median in 2^(1-n) of all cases.
Below `FEW` of them the interval reaches as far as Student's, with the standard error of leaving each out.
Measured coverage: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Clustered, Floats, MeasureRows
from loupe.stats.student import t_quantile
from loupe.types import Measure

CONFIDENCE = 0.95
#: With fewer clusters, the range of all that can be drawn holds the true value in less than 95 % of all cases.
FEW = 6
_NORMAL = NormalDist()
#: Multiplicities drawn at a time; bounds the memory of a draw to some tens of MB whatever the number of clusters.
_CHUNK = 2_000_000
#: Draws as close as this (times the value, if that is larger) differ by rounding only.
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Resampled:
    """One measure: its value, its values in every draw, and its values with one cluster left out.

    `draws` and `left_out` are empty if no draws were asked for. `clusters` have a score of this measure. `bounds` are
    what no value can lie beyond.
    """

    point: float
    draws: Floats
    left_out: Floats
    clusters: int
    bounds: tuple[float, float] = (-math.inf, math.inf)


class Computed(dict[str, Floats]):
    """Values by measure for `summarize`: a measure that was not computed reads as nan, and is not iterated over."""

    def __missing__(self, name: str) -> Floats:
        return np.array(np.nan)


def resample(analysis: Analysis, scores: Clustered) -> dict[str, Resampled]:
    """Every measure of the analysis that can be computed, in its order."""
    arrays = _arrays(analysis, scores)
    clusters = {name: scores.measures[name].clusters() for name in arrays}
    # A composite stands on its weakest component: with a table on one page only, nothing is known about other tables.
    weakest = min(clusters.values(), default=0)
    if analysis.summarize is not None and arrays:
        length = next(iter(arrays.values())).shape
        with np.errstate(all="ignore"):
            composites = analysis.summarize(Computed(arrays))
        arrays |= {name: np.broadcast_to(np.asarray(value, float), length) for name, value in composites.items()}
    bounds = {each.name: bounds_of(each, counted=each.name in clusters) for each in analysis.measures}
    first_left_out = analysis.draws + 1
    return {
        name: Resampled(
            float(values[0]),
            values[1:first_left_out],
            values[first_left_out:],
            clusters.get(name, weakest),
            bounds.get(name, (-math.inf, math.inf)),
        )
        for name in analysis.names
        if (values := arrays.get(name)) is not None
    }


def bounds_of(measure: Measure, *, counted: bool = True) -> tuple[float, float]:
    """What no value of a measure can lie beyond. One that is not counted, but made of others, may be a difference."""
    share = measure.unit != "number"
    if measure.bounded or (share and measure.higher_is_better):
        return 0.0, 1.0
    return (0.0 if share and counted else -math.inf), math.inf


def _can_vary(values: Resampled) -> bool:
    """Whether the draws can say anything: more than one cluster, and a measure that most draws define."""
    defined = int(np.count_nonzero(np.isfinite(values.draws)))
    return math.isfinite(values.point) and values.clusters > 1 and 2 * defined > values.draws.size


def interval(values: Resampled, *, share: bool = False) -> tuple[float, float] | None:
    """The 95 % interval, or None where the draws say nothing: they cannot vary, or are all equal.

    A bootstrap cannot draw what has never occurred, so an interval without width would claim certainty. With `share`,
    a value of exactly 0 or 1 on all clusters gets the exact binomial bound on the share of clusters that differ.
    """
    if not _can_vary(values):
        return None
    draws = values.draws[np.isfinite(values.draws)]
    if float(np.ptp(draws)) <= _SLACK * max(1.0, abs(values.point)):
        if not share or values.point not in (0.0, 1.0):
            return None
        unseen = 1 - ((1 - CONFIDENCE) / 2) ** (1 / values.clusters)
        return (0.0, unseen) if values.point == 0.0 else (1 - unseen, 1.0)
    acceleration = _acceleration(values)
    z = t_quantile((1 + CONFIDENCE) / 2, values.clusters - 1) * _widening(values.clusters)
    levels = [_NORMAL.cdf(_shifted(end, acceleration)) for end in (-z, z)]
    low, high = map(float, np.quantile(draws, levels))
    if values.clusters >= FEW:
        return low, high
    reach = t_quantile((1 + CONFIDENCE) / 2, values.clusters - 1) * _standard_error(values)
    lowest, highest = values.bounds
    return min(low, max(values.point - reach, lowest)), max(high, min(values.point + reach, highest))


def multiplicities(clusters: int, *, draws: int, seed: int) -> Iterator[Floats]:
    """How often each cluster is in each draw, in parts of shape (some draws, clusters); the arguments decide all."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _CHUNK // clusters)
    for start in range(0, draws, at_once):
        size = min(at_once, draws - start)
        chosen = generator.integers(0, clusters, size=(size, clusters))
        chosen += np.arange(size)[:, None] * clusters
        yield np.bincount(chosen.ravel(), minlength=size * clusters).reshape(size, clusters).astype(np.float64)


def _arrays(analysis: Analysis, scores: Clustered) -> dict[str, Floats]:
    """Per measure with scores: the value, the values of all draws, the values with each cluster left out."""
    size, draws = len(scores.labels), analysis.draws
    scored = [measure for measure in analysis.measures if measure.name in scores.measures]
    summed = [measure for measure in scored if not measure.pooled]
    pooled = [measure for measure in scored if measure.pooled]
    sums = [scores.measures[measure.name].sums(size) for measure in summed]
    table = np.concatenate(sums, axis=1) if sums else np.zeros((size, 0))
    total = table.sum(axis=0)
    drawn, pooled_draws = np.empty((draws, table.shape[1])), np.empty((draws, len(pooled)))
    done = 0
    for part in multiplicities(size, draws=draws, seed=analysis.seed) if size else ():
        drawn[done : done + len(part)] = part @ table
        for column, measure in enumerate(pooled):
            rows = scores.measures[measure.name]
            pooled_draws[done : done + len(part), column] = [_pooled(measure, rows, counts) for counts in part]
        done += len(part)
    stacked = np.concatenate([total[None], drawn, total - table if draws else table[:0]])
    ends = np.cumsum([part.shape[1] for part in sums]).tolist()
    arrays = {
        measure.name: value_of(measure, stacked[:, end - part.shape[1] : end])
        for measure, part, end in zip(summed, sums, ends, strict=True)
    }
    for column, measure in enumerate(pooled):
        point = _pooled(measure, scores.measures[measure.name], np.ones(size))
        # Leaving out every cluster in turn would cost as much again; without it the percentiles are not shifted.
        left_out = np.full(size if draws else 0, point)
        arrays[measure.name] = np.concatenate([[point], pooled_draws[:, column], left_out])
    fixed = {measure.name for measure in scored if not measure.sampled}
    return {name: np.full_like(values, values[0]) if name in fixed else values for name, values in arrays.items()}


def value_of(measure: Measure, sums: Floats) -> Floats:
    """A measure of sums of counts, shape (..., k) → (...)."""
    with np.errstate(all="ignore"):
        if measure.value is not None:
            return np.asarray(measure.value(sums), float)
        if sums.shape[-1] < 2:
            raise ValueError(f"measure {measure.name!r} needs two counts (or a `value` function) to be a ratio")
        ratio: Floats = sums[..., 0] / sums[..., 1]
        return ratio


def _pooled(measure: Measure, rows: MeasureRows, counts: Floats) -> float:
    """A pooled measure of the rows, each as often as its cluster was drawn; nan without any row."""
    if measure.value is None:
        raise ValueError(f"measure {measure.name!r} is pooled and needs a `value` function")
    drawn = np.repeat(rows.counts, counts[rows.cluster].astype(np.intp), axis=0)
    return float(measure.value(drawn)) if len(drawn) else math.nan


def _standard_error(values: Resampled) -> float:
    """By leaving each cluster out; 0 for a composite that more clusters move than its weakest part stands on.

    There, the degrees of freedom of the weakest part would make an interval that says nothing.
    """
    influence = values.point - values.left_out
    influence = influence[np.isfinite(influence) & (np.abs(influence) > _SLACK * max(1.0, abs(values.point)))]
    if influence.size > values.clusters:
        return 0.0
    apart = float(np.sum(influence**2)) - float(np.sum(influence)) ** 2 / values.clusters
    return math.sqrt(max(apart, 0.0) * (values.clusters - 1) / values.clusters)


def _acceleration(values: Resampled) -> float:
    """Efron's acceleration: the skewness of the clusters' influence on the value, by leaving each out."""
    influence = values.point - values.left_out
    influence = influence[np.isfinite(influence)]
    spread = float(np.sum(influence**2)) ** 1.5
    # Influences around 1e-100 would underflow; differences of equal numbers are noise around 1e-17.
    return float(np.sum(influence**3)) / (6 * spread) if spread > 1e-40 else 0.0


def _widening(clusters: int) -> float:
    """The spread of a bootstrap is that of n, not n − 1."""
    return math.sqrt(clusters / (clusters - 1))


def _shifted(z: float, acceleration: float) -> float:
    shifted = z + acceleration
    return acceleration + shifted / max(1 - acceleration * shifted, 0.05)
