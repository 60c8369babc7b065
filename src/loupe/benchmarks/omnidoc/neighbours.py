"""Neighbouring predictions that together are one block of the ground truth become one column (section 8.5 a, b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from loupe.benchmarks.omnidoc.distances import Distances, distance_matrix
from loupe.benchmarks.omnidoc.overlaps import Candidate, without_overlaps
from loupe.benchmarks.omnidoc.windows import window_distance
from loupe.metrics import normalized_edit_distance

#: A block and a prediction closer than this belong together already, and take no part.
SETTLED = 0.25
#: How well a piece must fit somewhere in the block that it is to be a part of.
FITS = 0.6


@dataclass(frozen=True, slots=True)
class Columns:
    """What blocks are assigned to: predictions or runs of them, and the distance of each block and each column."""

    runs: Sequence[range]
    distances: Distances


def merge_neighbours(truth: Sequence[str], predicted: Sequence[str], distances: Distances) -> Columns:
    """One column for each prediction, or for the run of predictions that a block was found to consist of."""
    settled = distances < SETTLED
    is_free: list[bool] = np.logical_not(np.any(settled, axis=0)).tolist()
    starts = [index for index, free in enumerate(is_free) if free]
    wanting = np.flatnonzero(~settled.any(axis=1)).tolist() if starts else []
    best = [_best_run(_Block(truth[row], predicted, distances[row]), starts, is_free) for row in wanting]
    return _with_runs(truth, predicted, distances, [run for run in without_overlaps(best) if len(run) > 1])


@dataclass(slots=True)
class _Block:
    """One block of the ground truth while runs are looked for that could make it up."""

    text: str
    predicted: Sequence[str]
    distances: Distances
    _fits: dict[int, float] = field(default_factory=dict)

    def fit(self, index: int) -> float:
        """How well one prediction fits somewhere in the block; infinite above `FITS`."""
        if index not in self._fits:
            self._fits[index] = window_distance(self.predicted[index], self.text, bound=FITS)
        return self._fits[index]


def _best_run(block: _Block, starts: Sequence[int], is_free: Sequence[bool]) -> Candidate:
    """The run nearest to the block, one for each start; the first of equals."""
    return min((_grow(block, start, is_free) for start in starts), key=lambda candidate: candidate.cost)


def _grow(block: _Block, start: int, is_free: Sequence[bool]) -> Candidate:
    """The run from `start` on, longer as long as no prediction that is added makes it worse or fits nowhere."""
    cost = float(block.distances[start])
    end = start + 1
    joined = block.predicted[start]
    if block.fit(start) > FITS:
        return Candidate(range(start, end), cost)
    while end < len(block.predicted) and is_free[end] and len(joined) <= len(block.text):
        longer = f"{joined} {block.predicted[end]}"
        longer_cost = normalized_edit_distance(longer, block.text)
        if longer_cost > cost or not block.fit(end) < FITS:
            break
        joined, cost, end = longer, longer_cost, end + 1
    return Candidate(range(start, end), cost)


def _with_runs(
    truth: Sequence[str], predicted: Sequence[str], distances: Distances, merged: Sequence[range]
) -> Columns:
    """One column for each run, at the place of its first prediction; the others keep theirs."""
    if not merged:
        return Columns([range(index, index + 1) for index in range(len(predicted))], distances)
    inner = {index for run in merged for index in run[1:]}
    at = {run.start: run for run in merged}
    runs = [at.get(index, range(index, index + 1)) for index in range(len(predicted)) if index not in inner]
    columns = distances[:, [run.start for run in runs]]
    long = [column for column, run in enumerate(runs) if len(run) > 1]
    columns[:, long] = distance_matrix(
        truth, [" ".join(predicted[runs[column].start : runs[column].stop]) for column in long]
    )
    return Columns(runs, columns)
