"""Settings of the statistics, as one record that travels through all of them. Method: docs/statistics.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loupe.types import Benchmark, Measure, Values

DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Analysis:
    """The measures, what `summarize` makes of their values, and how often chance is drawn, from which seed.

    `summarize` sees the measures that have scores; others read as nan. `headline` is the measure that was asked for
    beforehand and ranks engines ("": none). Without `draws` there are values alone, and no intervals.
    """

    measures: Sequence[Measure]
    summarize: Callable[[Values], Values] | None = None
    headline: str = ""
    draws: int = DRAWS
    seed: int = 0

    @classmethod
    def of(cls, benchmark: Benchmark, measures: Sequence[Measure] = ()) -> Analysis:
        """That of a benchmark; `measures` are what a run has, where these are more than the declared ones."""
        return cls(measures or benchmark.measures, benchmark.summarize, benchmark.headline_measure)

    @property
    def names(self) -> list[str]:
        """The names of the measures."""
        return [measure.name for measure in self.measures]

    def without_draws(self) -> Analysis:
        """The same for values alone."""
        return replace(self, draws=0)
