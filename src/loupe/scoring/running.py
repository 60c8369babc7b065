"""The headline measure while a run goes on: value and a rough 95 % interval from sums alone.

The interval is the normal approximation with the delta method: the headline is a function of summed counts, its slope
is taken numerically, and the samples' second moments give its variance. The result has the bootstrapped one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loupe.stats.bootstrap import Computed
from loupe.types import Benchmark, Estimate, SampleScores

_Z = 1.96
_STEP = 1e-5


class RunningScore:
    """Accumulates scores, each sample at the same small cost. Clusters are samples; groups are ignored."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._places: dict[str, slice] = {}
        self._sum = np.zeros(0)
        self._moments = np.zeros((0, 0))
        self._samples = 0

    def add(self, row: SampleScores) -> None:
        """Take one sample in."""
        if not row.scores:
            return
        for score in row.scores:
            self._make_place(score.measure, len(score.counts))
        counts = np.zeros_like(self._sum)
        for score in row.scores:
            counts[self._places[score.measure]] += score.counts
        self._sum += counts
        self._moments += np.outer(counts, counts)
        self._samples += 1

    def estimate(self) -> Estimate | None:
        """The headline so far, n in samples; None before there is one, or where it is no function of sums."""
        if not self._samples:
            return None
        size = self._sum.size
        # One row for the value, and two for the slope along each count.
        steps = _STEP * np.maximum(1.0, np.abs(self._sum))
        points = np.vstack([self._sum, self._sum + np.diag(steps), self._sum - np.diag(steps)])
        with np.errstate(all="ignore"):
            values = self._headline(points)
        if values is None or not np.isfinite(values[0]):
            return None
        value, slope = float(values[0]), (values[1 : 1 + size] - values[1 + size :]) / (2 * steps)
        if self._samples < 2 or not np.isfinite(slope).all():
            return Estimate(value=value, n=self._samples)
        spread = self._moments - np.outer(self._sum, self._sum) / self._samples
        variance = max(0.0, float(slope @ spread @ slope)) * self._samples / (self._samples - 1)
        margin = _Z * variance**0.5
        low, high = self._within_range(value - margin, value + margin)
        return Estimate(value=value, low=low, high=high, n=self._samples)

    def _within_range(self, low: float, high: float) -> tuple[float, float]:
        """Shares end at 0 and 1; error rates end at 0 only."""
        for measure in self._benchmark.measures:
            if measure.name == self._benchmark.headline_measure and measure.unit == "fraction":
                return max(0.0, low), min(1.0, high) if measure.higher_is_better else high
        return low, high

    def _headline(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The headline for each row of summed counts."""
        values = Computed()
        for measure in self._benchmark.measures:
            place = self._places.get(measure.name)
            if place is not None and not measure.pooled:
                sums = points[:, place]
                values[measure.name] = measure.value(sums) if measure.value else sums[:, 0] / sums[:, 1]
        headline = self._benchmark.headline_measure
        if headline not in values and values and self._benchmark.summarize:
            values |= self._benchmark.summarize(values)
        found = values.get(headline)
        return None if found is None else np.broadcast_to(np.asarray(found, dtype=np.float64), len(points))

    def _make_place(self, measure: str, width: int) -> None:
        if measure in self._places:
            return
        start = self._sum.size
        self._places[measure] = slice(start, start + width)
        self._sum = np.pad(self._sum, (0, width))
        self._moments = np.pad(self._moments, (0, width))
