"""Scores sorted into clusters: the pages (or documents) that are drawn as a whole.

Everything is put into one order first, so that no result depends on the order in which scores came in.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.errors import LoupeError
from loupe.types import Score

#: The label of the cluster, and one score of it.
Row: TypeAlias = tuple[str, Score]
Floats: TypeAlias = NDArray[np.float64]
#: Measure → the places of some of its scores in a table.
Places: TypeAlias = "Mapping[str, array[int] | NDArray[np.intp]]"


@dataclass(frozen=True, slots=True)
class MeasureRows:
    """All scores of one measure: `counts` of shape (n, k), in the order of `cluster`, the numbers of their clusters."""

    counts: Floats
    cluster: NDArray[np.intp]

    def clusters(self) -> int:
        """The number of clusters that have a score of this measure."""
        return int(np.count_nonzero(np.diff(self.cluster))) + 1

    def sums(self, clusters: int) -> Floats:
        """Counts summed within each of all clusters, shape (clusters, k); zeros where there is no score."""
        sums = np.zeros((clusters, self.counts.shape[1]))
        starts = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        sums[self.cluster[starts]] = np.add.reduceat(self.counts, starts, axis=0)
        return sums

    def contents(self, clusters: int) -> list[bytes]:
        """Return the sorted rows of each of all clusters as bytes, to compare and sort clusters without their names."""
        order = np.lexsort((*self.counts.T, self.cluster))
        ordered = self.counts[order] + 0.0  # no -0.0
        ends = np.searchsorted(self.cluster[order], np.arange(clusters + 1))
        return [ordered[start:end].tobytes() for start, end in itertools.pairwise(ends)]


@dataclass(frozen=True, slots=True)
class Clustered:
    """Scores by measure, over clusters with sorted labels. A measure without scores is not in `measures`."""

    labels: tuple[str, ...]
    measures: dict[str, MeasureRows]


class ScoreTable:
    """Scores as they come in: numbers in one column for each measure, so that those of a million samples fit in memory.

    A cluster counts even if all its scores are of measures that nobody asks for: a page without a table is a page that
    can be drawn.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns: dict[str, _Column] = {}
        self._labels: list[str] = []
        self._ranks: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    @property
    def measures(self) -> Collection[str]:
        """The names of the measures that have scores."""
        return self._columns.keys()

    @property
    def clusters(self) -> int:
        """The number of clusters that have scores."""
        return len(self._numbers)

    def add(self, label: str, score: Score) -> int:
        """Take in a score of a cluster; returns its place among those of its measure."""
        if (column := self._columns.get(score.measure)) is None:
            column = self._columns[score.measure] = _Column()
        return column.add(self._numbers.setdefault(label, len(self._numbers)), score.counts)

    def clustered(self, names: Collection[str], places: Places | None = None) -> Clustered:
        """The scores of the measures in `names` in clusters: all, or those at these `places`.

        Raises LoupeError if the scores of one measure have different numbers of counts.
        """
        labels, rank = self._in_order()
        chosen = {name: slice(None) for name in self._columns} if places is None else _as_arrays(places)
        clusters = {name: rank[np.asarray(self._columns[name].clusters)[rows]] for name, rows in chosen.items()}
        present = np.zeros(len(labels), dtype=bool)
        for found in clusters.values():
            present[found] = True
        place = np.cumsum(present) - 1
        return Clustered(
            tuple(itertools.compress(labels, present.tolist())),
            {
                name: _sorted(self._columns[name].table(name)[chosen[name]], place[clusters[name]])
                for name in names
                if name in clusters
            },
        )

    def _in_order(self) -> tuple[list[str], NDArray[np.intp]]:
        """The labels, sorted, and for the number of each cluster its place among them."""
        if len(self._labels) < len(self._numbers):
            self._labels = sorted(self._numbers)
            self._ranks = np.empty(len(self._labels), dtype=np.intp)
            self._ranks[[self._numbers[label] for label in self._labels]] = np.arange(len(self._labels))
        return self._labels, self._ranks


class _Column:
    """The scores of one measure: numbers of clusters, and counts, row after row."""

    def __init__(self) -> None:
        self.clusters = array("I")
        self._counts = array("d")
        self._widths: set[int] = set()

    def add(self, cluster: int, counts: Sequence[float]) -> int:
        """Add one score; returns its place."""
        self.clusters.append(cluster)
        self._counts.extend(counts)
        self._widths.add(len(counts))
        return len(self.clusters) - 1

    def table(self, name: str) -> Floats:
        """The counts, one row for each score."""
        if len(self._widths) > 1 or 0 in self._widths:
            found = " and ".join(map(str, sorted(self._widths)))
            raise LoupeError(
                f"scores of the measure {name!r} have {found} counts; all need the same number",
                hint="the `score` of the benchmark decides it",
            )
        table: Floats = np.asarray(self._counts).reshape(len(self.clusters), -1)
        return table


def sort_into_clusters(rows: Iterable[Row], names: Collection[str]) -> Clustered:
    """As `ScoreTable.clustered`, of all these scores."""
    table = ScoreTable()
    for label, score in rows:
        table.add(label, score)
    return table.clustered(names)


def _as_arrays(places: Places) -> dict[str, NDArray[np.integer[Any]]]:
    return {name: np.asarray(found) for name, found in places.items()}


def _sorted(table: Floats, cluster: NDArray[np.intp]) -> MeasureRows:
    order = np.lexsort((*table.T, cluster))
    return MeasureRows(table[order], cluster[order])
