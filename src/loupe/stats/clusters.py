"""Scores sorted into clusters: the pages (or documents) that are drawn as a whole.

Everything is put into one order first, so that no result depends on the order in which scores came in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.types import Score

#: The label of the cluster, and one score of it.
Row: TypeAlias = tuple[str, Score]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasureRows:
    """All scores of one measure: `counts` of shape (n, k), in the order of `cluster`, the numbers of their clusters."""

    counts: Floats
    cluster: NDArray[np.intp]

    def clusters(self) -> int:
        """How many clusters have a score of this measure."""
        return int(np.count_nonzero(np.diff(self.cluster))) + 1

    def sums(self, clusters: int) -> Floats:
        """Counts summed within each of all clusters, shape (clusters, k); zeros where there is no score."""
        sums = np.zeros((clusters, self.counts.shape[1]))
        starts = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        sums[self.cluster[starts]] = np.add.reduceat(self.counts, starts, axis=0)
        return sums


@dataclass(frozen=True, slots=True)
class Clustered:
    """Scores by measure, over clusters with sorted labels. A measure without scores is not in `measures`."""

    labels: tuple[str, ...]
    measures: dict[str, MeasureRows]


def sort_into_clusters(rows: Iterable[Row], names: Collection[str]) -> Clustered:
    """Sort the scores of the measures in `names` into clusters.

    A cluster counts even if all its scores are of other measures: a page without a table is a page that can be drawn.
    Raises ValueError if the scores of one measure have different numbers of counts.
    """
    kept = list(rows)
    labels = tuple(sorted({label for label, _ in kept}))
    number = {label: index for index, label in enumerate(labels)}
    counts: dict[str, tuple[list[tuple[float, ...]], list[int]]] = {name: ([], []) for name in names}
    for label, score in kept:
        if score.measure in counts:
            of_measure, clusters = counts[score.measure]
            of_measure.append(score.counts)
            clusters.append(number[label])
    return Clustered(labels, {name: _sorted(name, *found) for name, found in counts.items() if found[0]})


def _sorted(name: str, counts: list[tuple[float, ...]], clusters: list[int]) -> MeasureRows:
    widths = {len(row) for row in counts}
    if len(widths) > 1 or 0 in widths:
        raise ValueError(f"scores of measure {name!r} have {sorted(widths)} counts; all need the same number of them")
    table, cluster = np.array(counts, dtype=np.float64), np.array(clusters, dtype=np.intp)
    order = np.lexsort((*table.T, cluster))
    return MeasureRows(table[order], cluster[order])
