"""Neighbouring predictions that together are one block of the ground truth become one column.

Protocol: docs/protocols/omnidocbench.md#neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from loupe.benchmarks.omnidocbench.match.distances import Distances, distance_matrix
from loupe.benchmarks.omnidocbench.match.neighbouring_pieces import BlockFit, Runs, best_run
from loupe.benchmarks.omnidocbench.match.overlaps import without_overlaps
from loupe.benchmarks.omnidocbench.work import Work

#: A block and a prediction closer than this belong together already, and take no part.
SETTLED = 0.25


@dataclass(frozen=True, slots=True)
class Columns:
    """What blocks are assigned to: predictions or runs of them, and the distance of each block and each column."""

    runs: Sequence[range]
    distances: Distances
    #: Of each block that had no near prediction, the run that comes nearest; overlaps not yet resolved.
    best: Mapping[int, range] = field(default_factory=dict)
    #: Whether a prediction was not near to any block.
    is_free: Sequence[bool] = ()


def merge_neighbours(
    truth: Sequence[str], predicted: Sequence[str], distances: Distances, work: Work, *, longest_run: int
) -> Columns:
    """One column for each prediction, or for the run of predictions that a block was found to consist of.

    Raises TooMuchWorkError.
    """
    settled = distances < SETTLED
    is_free: list[bool] = np.logical_not(np.any(settled, axis=0)).tolist()
    wanting = np.flatnonzero(~settled.any(axis=1)).tolist() if any(is_free) else []
    if not wanting:
        return replace(_with_runs(truth, predicted, distances, []), is_free=is_free)
    runs = Runs(predicted, is_free, work, longest_run)
    best = {row: best_run(BlockFit(truth[row], runs, distances[row])) for row in wanting}
    merged = [run for run in without_overlaps(best.values()) if len(run) > 1]
    columns = _with_runs(truth, predicted, distances, merged)
    return replace(columns, best={row: found.run for row, found in best.items()}, is_free=is_free)


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
