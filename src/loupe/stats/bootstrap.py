"""The bootstrap over clusters, and the interval that its draws give.

Sources: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987): percentiles shifted by the acceleration, so
that both ends miss equally often when few pages are far worse than the rest; T. Hesterberg, "What teachers should know
about the bootstrap", The American Statistician 69 (2015): percentiles expanded to Student's t for small samples.
The bias term of Efron is set to the acceleration, its value for a mean, which spares the noise of estimating it.
Percentiles of a sum over clusters need no draws: these only tell how a measure differs from one (A. Davison, D.
Hinkley and E. Schechtman, "Efficient bootstrap simulation", Biometrika 73, 1986), so that hardly any chance is left.
Draws of a few clusters cannot reach far enough: n clusters lie all on one side of their median in 2 of 2^n cases. With
fewer than `FEW`, the interval reaches at least as far as Student's. A composite has the degrees of freedom of its parts
(F. Satterthwaite, Biometrics Bulletin 2, 1946), and at most those of the clusters that it stands on.
Measured coverage: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Clustered, Floats, MeasureRows
from loupe.stats.measure_values import (
    bounds_of,
    cluster_values,
    pooled_value,
    possible_difference,
    shares_of,
    sizes_of,
    value_of,
)
from loupe.stats.student import t_quantile
from loupe.types import Measure, Values

CONFIDENCE = 0.95
#: With fewer clusters, percentiles of the draws alone hold the true value too rarely.
FEW = 10
_NORMAL = NormalDist()
#: Multiplicities drawn at a time; bounds the memory of a draw to some tens of MB whatever the number of clusters.
_CHUNK = 2_000_000
#: Draws as close as this (times the value, if that is larger) differ by rounding only.
_SLACK = 1e-12
#: A measure is moved by so much to see what moves with it.
_STEP = 1e-6
#: The sum that a measure is near to at a percentile is found in so many rounds, or as close as this part of the spread.
_ROUNDS, _NEAR = 12, 1e-4
#: The grid of a sum reaches so many standard deviations to both sides, in steps that add 0.2 % to its variance.
_REACH, _GRID = 16.0, 290.0
#: Leaving out each of more clusters takes longer than to draw them.
_MANY_POOLED = 2000

#: Sums of counts, shape (n, k), → the values of a measure.
_Formula: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Sums:
    """What a measure is computed from: the counts of each cluster, and their sums in each draw.

    They take chance out of its percentiles. Near one of them a measure is nearly a sum over the clusters that were
    drawn, and the distribution of such a sum is known without draws: these tell by how much the measure differs.
    """

    table: Floats
    drawn: Floats
    formula: _Formula

    def percentile(self, draws: Floats, level: float) -> float:
        """Return a percentile of a measure that has these values in the draws."""
        total, apart = self.table.sum(axis=0), self.table - self.table.mean(axis=0)
        covariance = apart.T @ apart
        at, last = total, math.inf
        for _ in range(_ROUNDS):
            base, slopes = self._tangent(at)
            along = covariance @ slopes
            variance = float(slopes @ along)
            if not (math.isfinite(base) and variance > 0):
                return float(np.quantile(draws[np.isfinite(draws)], level))
            sums, reached = distribution_of_sum(self.table @ slopes)
            end = float(np.interp(level, reached, sums))
            if abs(base + end - last) <= _NEAR * math.sqrt(variance):
                break
            # Where sums most likely are if the measure has come so far.
            at, last = total + along * ((end - float(slopes @ total)) / variance), base + end
        return _crossing(base + sums, reached + _share(draws, base + sums) - _share(self.drawn @ slopes, sums), level)

    def _tangent(self, at: Floats) -> tuple[float, Floats]:
        """Return the sum that the measure nearly is near these sums of counts: base + slopes · sums."""
        steps = _STEP * np.maximum(1.0, np.abs(at))
        with np.errstate(all="ignore"):
            values = self.formula(np.concatenate([at[None], at + np.diag(steps)]))
        slopes = np.nan_to_num((values[1:] - values[0]) / steps, posinf=0.0, neginf=0.0)
        return float(values[0] - slopes @ at), slopes


def _share(draws: Floats, ends: Floats) -> Floats:
    """The share of the draws up to each end."""
    ordered = np.sort(draws[np.isfinite(draws)])
    found: Floats = np.searchsorted(ordered, ends, side="right") / ordered.size
    return found


def _crossing(ends: Floats, reached: Floats, level: float) -> float:
    """Where shares that rise, but for chance, reach a level: between the first time and the last."""
    first = np.interp(level, np.maximum.accumulate(reached), ends)
    last = np.interp(level, np.minimum.accumulate(reached[::-1])[::-1], ends)
    return float(first + last) / 2


def distribution_of_sum(values: Floats) -> tuple[Floats, Floats]:
    """Return ends, and the chance of each that a sum of n values, drawn with replacement from these n, is below it.

    The distribution of one value, on a grid, is convolved with itself n times (fast Fourier transform).

    >>> ends, chances = distribution_of_sum(np.array([0.0] * 9 + [1.0]))
    >>> np.interp([0.5, 1.5, 2.5], ends, chances).round(3).tolist()
    [0.349, 0.736, 0.93]
    """
    count, mean = values.size, float(values.mean())
    spread = float(np.linalg.norm(values - mean))
    points = 1 << max(12, math.ceil(math.log2(_GRID * math.sqrt(count))))
    step = 2 * _REACH * spread / points
    above, below = np.modf((values - mean) / step + points)
    column = below.astype(np.intp) % points
    one = np.bincount(column, 1 - above, points) + np.bincount((column + 1) % points, above, points)
    chances = np.fft.irfft(np.fft.rfft(one / count) ** count, points)
    ends = mean * count + (np.arange(points) - points // 2 + 0.5) * step
    reached = np.cumsum(np.maximum(np.roll(chances, points // 2), 0.0))
    return np.clip(ends, count * float(values.min()), count * float(values.max())), reached


@dataclass(frozen=True, slots=True)
class Resampled:
    """One measure: its value, its values in every draw, and its values with one cluster left out.

    `draws` and `left_out` are empty if no draws were asked for. `clusters` have a score of this measure, or of that
    part of a composite which fewest have. `error` is the standard error by leaving clusters out, known with so many
    `degrees` of freedom. No value lies outside of `bounds`. `sums` are what the draws were computed from. `weights` say
    how much each cluster counts (they add up to 1), and `possible` by how much one alone can change the value.
    """

    point: float
    draws: Floats
    left_out: Floats
    clusters: int
    degrees: int
    error: float
    bounds: tuple[float, float] = (-math.inf, math.inf)
    sums: Sums | None = None
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    possible: float = math.nan


def _enough(analysis: Analysis, clusters: int) -> int:
    """Return the number of draws: more if clusters are few, where a measure is least like a sum, and draws cost little.

    Another seed then moves an end by at most a twentieth of the width.
    """
    if any(measure.pooled for measure in analysis.measures):
        return analysis.draws
    return analysis.draws * min(16, max(1, 250 // max(1, clusters)))


class Computed(dict[str, Floats]):
    """Values by measure for `summarize`: a measure that was not computed reads as nan, and is not iterated over."""

    def __missing__(self, name: str) -> Floats:
        return np.array(np.nan)


def resample(analysis: Analysis, scores: Clustered) -> dict[str, Resampled]:
    """Every measure of the analysis that can be computed, in its order."""
    analysis = replace(analysis, draws=_enough(analysis, len(scores.labels)))
    drawn = _draw(analysis, scores)
    arrays = drawn.arrays
    after = analysis.draws + 1
    counted = {}
    for measure in analysis.measures:
        if (values := arrays.get(measure.name)) is None:
            continue
        rows = scores.measures[measure.name]
        n = rows.clusters()
        counted[measure.name] = Resampled(
            *(float(values[0]), values[1:after], values[after:], n),
            degrees=n - 1,
            error=math.sqrt(variance(values[0], values[after:], n)),
            bounds=bounds_of(measure, None if measure.pooled else cluster_values(measure, rows)),
            sums=drawn.sums(measure.name),
            weights=shares_of(sizes_of(measure, rows, len(scores.labels))),
            possible=possible_difference(measure, rows),
        )
    found = counted | _composites(analysis, scores, drawn, counted)
    return {name: found[name] for name in analysis.names if name in found}


def _composites(
    analysis: Analysis, scores: Clustered, drawn: _Drawn, counted: dict[str, Resampled]
) -> dict[str, Resampled]:
    """What `summarize` makes of the measures; each stands on those alone that it moves with."""
    arrays = drawn.arrays
    if analysis.summarize is None or not arrays:
        return {}
    after, length = analysis.draws + 1, len(next(iter(arrays.values())))
    with np.errstate(all="ignore"):
        made = analysis.summarize(Computed(arrays))
        slopes = _slopes(analysis.summarize, {name: each.point for name, each in counted.items()})
    found = {}
    for name, value in made.items():
        values = np.broadcast_to(np.asarray(value, float), (length,))
        parts = slopes.get(name) or dict.fromkeys(counted, 1.0)
        same = next((part for part in parts if np.array_equal(values, arrays[part], equal_nan=True)), None)
        if same is not None:
            # A mean of one is that one, to the last digit.
            found[name] = counted[same]
            continue
        spreads = [((slope * counted[part].error) ** 2, counted[part].degrees) for part, slope in parts.items()]
        shares = _shares(scores, parts)
        standing = np.isfinite(shares)
        moves = np.nan_to_num(values[0] - values[after:])
        moves -= moves[standing[: len(moves)]].mean() if moves.size else 0.0
        found[name] = Resampled(
            *(float(values[0]), values[1:after], values[after:]),
            clusters=min(counted[part].clusters for part in parts),
            degrees=max(1, min(_degrees(spreads), int(np.count_nonzero(standing)) - 1)),
            error=math.sqrt(float(np.nansum(shares[: len(moves)] * moves**2))),
            bounds=_bounds_of_parts(analysis.summarize, name, parts, counted),
            sums=drawn.sums_of_composite(name, analysis.summarize),
            weights=shares_of(np.sum([abs(slope) * counted[part].weights for part, slope in parts.items()], axis=0)),
            possible=sum(abs(slope) * counted[part].possible for part, slope in parts.items()),
        )
    return found


def _bounds_of_parts(
    summarize: Callable[[Values], Values], name: str, slopes: dict[str, float], counted: dict[str, Resampled]
) -> tuple[float, float]:
    """What a composite is where each of its parts is at the end that lowers it, or raises it, most."""
    ends = {part: each.bounds if slopes.get(part, 1.0) > 0 else each.bounds[::-1] for part, each in counted.items()}
    with np.errstate(all="ignore"):
        made = summarize(Computed({part: np.array(end) for part, end in ends.items()})).get(name, math.nan)
    low, high = np.broadcast_to(np.asarray(made, float), (2,))
    return (float(low) if math.isfinite(low) else -math.inf), (float(high) if math.isfinite(high) else math.inf)


def _shares(scores: Clustered, parts: Iterable[str]) -> Floats:
    """(n − 1) / n for each cluster, n being how many have the rarest of its parts; nan for one without any of them."""
    shares = np.full(len(scores.labels), np.nan)
    for part in parts:
        rows, n = scores.measures[part].cluster, scores.measures[part].clusters()
        shares[rows] = np.fmin(shares[rows], (n - 1) / n)
    return shares


def _slopes(summarize: Callable[[Values], Values], points: dict[str, float]) -> dict[str, dict[str, float]]:
    """By how much each composite moves with each measure: composite → measure → slope, if it moves at all."""
    steps = {name: _STEP * max(1.0, abs(point)) for name, point in points.items()}
    moved = {name: np.full(len(points) + 1, point) for name, point in points.items()}
    for row, (name, step) in enumerate(steps.items(), 1):
        moved[name][row] += step
    slopes = {}
    for composite, values in summarize(Computed(moved)).items():
        rows = np.broadcast_to(np.asarray(values, float), (len(points) + 1,))
        found = {name: (row - rows[0]) / step for row, (name, step) in zip(rows[1:], steps.items(), strict=True)}
        slopes[composite] = {name: float(slope) for name, slope in found.items() if abs(slope) > _STEP}
    return slopes


def _degrees(spreads: Sequence[tuple[float, int]]) -> int:
    """Satterthwaite's degrees of freedom of a sum of variances, each with its own."""
    total = sum(each for each, _ in spreads)
    if total <= 0 or any(degrees < 1 for _, degrees in spreads):
        return min(degrees for _, degrees in spreads)
    return int(total**2 / sum(each**2 / degrees for each, degrees in spreads) + _SLACK)


def variance(point: float, left_out: Floats, clusters: int) -> float:
    """The variance of a value of so many clusters, by leaving each out. Others that were left out moved nothing."""
    influence = point - left_out
    influence = influence[np.isfinite(influence)]
    if influence.size == 0 or clusters < 2 or not math.isfinite(point):
        return 0.0
    apart = float(np.sum(influence**2)) - float(np.sum(influence)) ** 2 / clusters
    return max(apart, 0.0) * (clusters - 1) / clusters


def can_vary(values: Resampled) -> bool:
    """Whether the draws can say anything: more than one cluster, and a measure that most draws define."""
    defined = int(np.count_nonzero(np.isfinite(values.draws)))
    return math.isfinite(values.point) and values.clusters > 1 and 2 * defined > values.draws.size


def interval(values: Resampled) -> tuple[float, float] | None:
    """The 95 % interval, or None where the draws say nothing: they cannot vary, or are all equal.

    With few clusters it is at least Student's, within the bounds of the measure.
    """
    if not can_vary(values):
        return None
    draws = values.draws[np.isfinite(values.draws)]
    if float(np.ptp(draws)) <= _SLACK * max(1.0, abs(values.point)):
        return None
    acceleration = _acceleration(values)
    t = t_quantile((1 + CONFIDENCE) / 2, values.degrees)
    z = t * _widening(values.degrees + 1)
    levels = [_NORMAL.cdf(_shifted(end, acceleration)) for end in (-z, z)]
    low, high = (_percentile(values, draws, level) for level in levels)
    if values.clusters >= FEW:
        return low, high
    lowest, highest = values.bounds
    reach = t * values.error
    return min(low, max(values.point - reach, lowest)), max(high, min(values.point + reach, highest))


def _percentile(values: Resampled, draws: Floats, level: float) -> float:
    if values.sums is None:
        return float(np.quantile(draws, level))
    end = values.sums.percentile(values.draws, level)
    return min(max(end, min(values.bounds[0], float(draws.min()))), max(values.bounds[1], float(draws.max())))


def multiplicities(clusters: int, *, draws: int, seed: int) -> Iterator[Floats]:
    """How often each cluster is in each draw, in parts of shape (some draws, clusters); the arguments decide all."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _CHUNK // clusters)
    for start in range(0, draws, at_once):
        size = min(at_once, draws - start)
        chosen = generator.integers(0, clusters, size=(size, clusters))
        chosen += np.arange(size)[:, None] * clusters
        yield np.bincount(chosen.ravel(), minlength=size * clusters).reshape(size, clusters).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The arrays of every measure with scores: the value, the values of all draws, the values without each cluster.

    `table` holds the counts of each cluster, and `drawn` their sums in each draw. `formulas` say of which columns a
    measure is made, and how; `pooled` ones of many clusters have none.
    """

    arrays: dict[str, Floats]
    table: Floats
    drawn: Floats
    formulas: dict[str, tuple[slice, _Formula]]

    def sums(self, name: str) -> Sums | None:
        """Return what a measure is computed from."""
        if name not in self.formulas or not len(self.drawn):
            return None
        place, formula = self.formulas[name]
        return Sums(self.table[:, place], self.drawn[:, place], formula)

    def sums_of_composite(self, name: str, summarize: Callable[[Values], Values]) -> Sums | None:
        """Return what a composite is computed from; None if a measure has no formula."""
        if self.formulas.keys() != self.arrays.keys() or not len(self.drawn):
            return None

        def formula(sums: Floats) -> Floats:
            parts = {part: each(sums[:, place]) for part, (place, each) in self.formulas.items()}
            return np.broadcast_to(np.asarray(summarize(Computed(parts))[name], float), (len(sums),))

        return Sums(self.table, self.drawn, formula)


def _draw(analysis: Analysis, scores: Clustered) -> _Drawn:
    size, draws = len(scores.labels), analysis.draws
    scored = [measure for measure in analysis.measures if measure.name in scores.measures]
    pooled = [measure for measure in scored if measure.pooled]
    left_out = {each.name: _pooled_left_out(each, scores.measures[each.name], size if draws else 0) for each in pooled}
    columns = [
        _influence(left_out[each.name], size) if each.pooled else _with_presence(scores.measures[each.name], size)
        for each in scored
    ]
    table = np.concatenate([np.zeros((size, 0)), *columns], axis=1)
    total = table.sum(axis=0)
    drawn, pooled_draws = np.empty((draws, table.shape[1])), np.empty((draws, len(pooled)))
    # The draws of a cluster depend on what it scored, and not on its label.
    ranks = [places_of(scores.measures[measure.name].contents(size)) for measure in pooled]
    order = np.lexsort((*ranks, *table.T)) if scored else np.arange(size)
    place, ordered, done = np.argsort(order), table[order], 0
    for part in multiplicities(size, draws=draws, seed=analysis.seed) if size else ():
        drawn[done : done + len(part)] = part @ ordered
        for column, measure in enumerate(pooled):
            rows = scores.measures[measure.name]
            pooled_draws[done : done + len(part), column] = [
                pooled_value(measure, rows, counts[place]) for counts in part
            ]
        done += len(part)
    stacked = np.concatenate([total[None], drawn, total - table if draws else table[:0]])
    ends = np.cumsum([part.shape[1] for part in columns]).tolist()
    places = {each.name: slice(end - part.shape[1], end) for each, part, end in zip(scored, columns, ends, strict=True)}
    arrays: dict[str, Floats] = {}
    for measure in scored:
        if measure.pooled:
            values, each = left_out[measure.name], pooled_draws[:, pooled.index(measure)]
            arrays[measure.name] = np.concatenate([values[:1], each, values[1:]])
        else:
            arrays[measure.name] = _of_sums(measure, stacked[:, places[measure.name]])
        if not measure.sampled:
            arrays[measure.name] = np.full_like(arrays[measure.name], arrays[measure.name][0])
    formulas = {
        each.name: (places[each.name], _formula(each, float(arrays[each.name][0])))
        for each in scored
        if not each.pooled or table[:, places[each.name]].any()
    }
    return _Drawn(arrays, ordered, drawn, formulas)


def _formula(measure: Measure, point: float) -> _Formula:
    """How a measure is made of its columns."""
    if not measure.sampled:
        return lambda sums: np.full(len(sums), point)
    return (lambda sums: point + sums[:, 0]) if measure.pooled else lambda sums: _of_sums(measure, sums)


def _of_sums(measure: Measure, sums: Floats) -> Floats:
    """A measure of sums, whose last column counts the clusters that have it; nan without any."""
    return np.where(sums[:, -1] > 0, value_of(measure, sums[:, :-1]), np.nan)


def _pooled_left_out(measure: Measure, rows: MeasureRows, size: int) -> Floats:
    """The value of a pooled measure, and its values without each cluster: the same if there are too many to try."""
    point = pooled_value(measure, rows, np.ones(int(rows.cluster[-1]) + 1))
    values = np.full(1 + size, point)
    if rows.clusters() <= _MANY_POOLED:
        for cluster in np.unique(rows.cluster) if size else ():
            values[1 + cluster] = pooled_value(measure, rows, 1.0 - (np.arange(size) == cluster))
    return values


def _influence(values: Floats, size: int) -> Floats:
    """What each cluster adds to a value, in one column: the value, and the values without each (none: not known)."""
    if len(values) <= size:
        return np.zeros((size, 1))
    apart = np.nan_to_num(values[0] - values[1:])
    found: Floats = (apart - np.sort(apart).mean())[:, None]
    return found


def places_of(contents: Sequence[bytes]) -> NDArray[np.intp]:
    """Return the place of each among all different ones, to sort by."""
    places = {each: place for place, each in enumerate(sorted(set(contents)))}
    return np.array([places[each] for each in contents], dtype=np.intp)


def _with_presence(rows: MeasureRows, clusters: int) -> Floats:
    present = np.zeros((clusters, 1))
    present[rows.cluster] = 1.0
    return np.concatenate([rows.sums(clusters), present], axis=1)


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
