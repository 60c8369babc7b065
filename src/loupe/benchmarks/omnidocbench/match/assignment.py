"""Blocks and predictions paired at the least total distance; blocks found inside predictions.

Protocol: docs/protocols/omnidocbench.md#assignment to #key-edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from loupe.benchmarks.omnidocbench.match.joined_columns import Columns
from loupe.benchmarks.omnidocbench.match.windows import window_distance
from loupe.benchmarks.omnidocbench.records import Step
from loupe.benchmarks.omnidocbench.work import Work
from loupe.metrics import normalized_edit_distance
from loupe.metrics.assignment import assign

#: A pair farther apart than this is no match.
MATCHES = 0.7
#: A block nearer than this to some part of a prediction is contained in it.
CONTAINED = 0.4

#: The predictions that blocks are matched with: their indices, ascending.
Key: TypeAlias = tuple[int, ...]


class Match(NamedTuple):
    """One block and what it is matched with; `distance` is what the bound of the step was held against."""

    block: int
    key: Key
    step: Step
    distance: float


def match_blocks(
    truth: Sequence[str], predicted: Sequence[str], columns: Columns, work: Work, containable: Sequence[bool]
) -> dict[Key, list[Match]]:
    """The blocks of each key; a key may have none, and still marks its predictions as used.

    `containable` says of each block whether it may be a part of a prediction.

    Raises TooMuchWorkError.
    """
    assigned = list(_assigned(columns))
    found = {match.block for match in assigned}
    missing = [block for block in range(len(truth)) if block not in found and containable[block]]
    return _by_key(assigned, _contained(truth, predicted, missing, work))


def _assigned(columns: Columns) -> Iterator[Match]:
    for row, column in zip(*assign(columns.distances), strict=True):
        distance = float(columns.distances[row, column])
        if distance <= MATCHES:
            run = columns.runs[column]
            yield Match(int(row), tuple(run), "run merge" if len(run) > 1 else "assignment", distance)


def _contained(truth: Sequence[str], predicted: Sequence[str], blocks: Sequence[int], work: Work) -> Iterator[Match]:
    """Each prediction, those that are matched too, with each of the blocks that it contains."""
    for index, line in enumerate(predicted):
        for block in blocks:
            if len(truth[block]) > len(line):
                continue
            distance = window_distance(truth[block], line, bound=CONTAINED, work=work)
            if distance < CONTAINED:
                yield Match(block, (index,), "containment", distance)


def _by_key(assigned: Iterable[Match], contained: Iterable[Match]) -> dict[Key, list[Match]]:
    """Blocks by what they are matched with, each block once, in the order of upstream.

    A run and one of its members are two keys, so one prediction can serve two groups of blocks.
    """
    matches: dict[Key, list[Match]] = {}
    used: set[int] = set()
    for match in (*assigned, *contained):
        blocks = matches.setdefault(match.key, [])
        if match.block not in used:
            blocks.append(match)
            used.add(match.block)
    return matches


def reported_edit(key: Key, blocks: Sequence[int], truth: Sequence[str], predicted: Sequence[str]) -> float:
    """The distance that the results name and no score uses: several blocks are held against the first line only."""
    if len(blocks) > 1:
        return normalized_edit_distance(predicted[key[0]], "".join(truth[block] for block in blocks))
    return normalized_edit_distance(" ".join(predicted[index] for index in key), truth[blocks[0]])
