"""Which runs of predictions are kept where several blocks want the same predictions.

Protocol: docs/protocols/omnidocbench.md#overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class RunOfPieces(NamedTuple):
    """A run of predictions that a block may consist of, and its distance to that block."""

    run: range
    cost: float


def without_overlaps(candidates: Iterable[RunOfPieces]) -> list[range]:
    """Runs that share no prediction: of each group that hangs together, the set with the least mean distance."""
    kept: list[range] = []
    for group in _groups(candidates):
        kept += [candidate.run for candidate in min(_paths(group), key=_mean_cost)]
    return kept


def _groups(candidates: Iterable[RunOfPieces]) -> list[list[RunOfPieces]]:
    """By first prediction; a candidate is of the group before if it shares a prediction with any of its members."""
    groups: list[list[RunOfPieces]] = []
    end = 0
    for candidate in sorted(candidates, key=lambda candidate: candidate.run.start):
        if groups and candidate.run.start < end:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
        end = max(end, candidate.run.stop)
    return groups


def _paths(group: Sequence[RunOfPieces]) -> list[list[RunOfPieces]]:
    """Sets of runs that can stand together; not all there are, but those that upstream comes upon."""
    paths = [[group[0]]]
    for candidate in group[1:]:
        joined = [_join(path, candidate) for path in paths]
        if not any(joined):
            paths.append([candidate])
    return paths


def _join(path: list[RunOfPieces], candidate: RunOfPieces) -> bool:
    """Add the candidate to a set that has room for it; of two with the same run the cheaper stays. False: no room."""
    same = [member for member in path if member.run == candidate.run]
    if same:
        if same[0].cost > candidate.cost:
            path.remove(same[0])
            path.append(candidate)
        return True
    if any(_overlap(member.run, candidate.run) for member in path):
        return False
    path.append(candidate)
    return True


def _overlap(run: range, other: range) -> bool:
    return run.start < other.stop and other.start < run.stop


def _mean_cost(path: Sequence[RunOfPieces]) -> float:
    return sum(candidate.cost for candidate in path) / len(path)
