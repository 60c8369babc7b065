"""The scores of one run as comparisons need them: read once, and then columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Set

import numpy as np

from loupe.stats.clusters import Clustered, ScoreTable
from loupe.types import FAILED, SampleScores


class ScoredRun:
    """The scores of a run, in clusters: the sample's group, or the sample itself where it has none.

    `all_failed`: there are samples, and none has an answer.
    """

    def __init__(self, samples: Iterable[SampleScores]) -> None:
        self._table = ScoreTable()
        self._numbers: dict[str, int] = {}
        self._samples: dict[str, array[int]] = {}
        some, answered = False, False
        for item in samples:
            some, answered = True, answered or not (item.outcome in FAILED or item.error)
            for score in item.scores:
                self._table.add(item.group or item.sample, score)
                number = self._numbers.setdefault(item.sample, len(self._numbers))
                self._samples.setdefault(score.measure, array("I")).append(number)
        self.all_failed = some and not answered

    @property
    def scored(self) -> Set[str]:
        """The samples that have scores."""
        return self._numbers.keys()

    def clustered(self, names: Collection[str], shared: Collection[str] | None = None) -> Clustered:
        """The scores of the measures in `names`: all, or those of the `shared` samples."""
        if shared is None or len(shared) == len(self._numbers):
            return self._table.clustered(names)
        wanted = np.fromiter((sample in shared for sample in self._numbers), dtype=bool, count=len(self._numbers))
        places = {name: np.flatnonzero(wanted[np.asarray(numbers)]) for name, numbers in self._samples.items()}
        return self._table.clustered(names, {name: found for name, found in places.items() if found.size})
