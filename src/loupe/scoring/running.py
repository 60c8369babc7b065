"""The headline measure while a run goes on: its value from sums alone.

It has no interval: that is drawn once, at the end, by the one method that all results share (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from loupe.stats.bootstrap import Computed, value_of
from loupe.types import Benchmark, Estimate, SampleScores


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

    def estimate(self) -> Estimate | None:
        """The headline so far, n in samples; None before there is one, or where it is no function of sums."""
        with np.errstate(all="ignore"):
            value = self._headline(self._sums)
        return None if value is None or not np.isfinite(value) else Estimate(value=value, n=self._samples)

    def _headline(self, sums: Mapping[str, NDArray[np.float64]]) -> float | None:
        values = Computed(
            (measure.name, value_of(measure, sums[measure.name]))
            for measure in self._benchmark.measures
            if measure.name in sums and not measure.pooled
        )
        headline = self._benchmark.headline_measure
        if headline not in values and values and self._benchmark.summarize:
            values |= self._benchmark.summarize(values)
        found = values.get(headline)
        return None if found is None else float(found)
