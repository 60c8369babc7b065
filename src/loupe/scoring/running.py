"""The headline measure while a run goes on: its value from sums alone.

It has no interval: that is drawn once, at the end, by the one method that all results share (docs/statistics.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loupe.stats.bootstrap import Computed
from loupe.stats.measure_values import value_of
from loupe.types import Benchmark, Estimate, Measure, SampleScores


class RunningScore:
    """Accumulates scores, each sample at the same small cost."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._samples = 0

    def add(self, row: SampleScores) -> None:
        """Take one sample in."""
        for score in row.scores:
            before = self._sums.get(score.measure)
            counts = np.asarray(score.counts, dtype=np.float64)
            self._sums[score.measure] = counts if before is None else before + counts
        self._samples += bool(row.scores)

    def estimate(self) -> tuple[Measure, Estimate] | None:
        """Return the headline so far, or the first measure there is without it; n is in samples.

        None before there is one, or if all are no functions of sums.
        """
        benchmark = self._benchmark
        with np.errstate(all="ignore"):
            values = Computed(
                (measure.name, value_of(measure, self._sums[measure.name]))
                for measure in benchmark.measures
                if measure.name in self._sums and not measure.pooled
            )
            if benchmark.headline_measure not in values and values and benchmark.summarize:
                values |= benchmark.summarize(values)
        for measure in sorted(benchmark.measures, key=lambda one: one.name != benchmark.headline_measure):
            if measure.name in values and np.isfinite(values[measure.name]):
                return measure, Estimate(value=float(values[measure.name]), n=self._samples)
        return None
