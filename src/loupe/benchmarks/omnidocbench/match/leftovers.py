"""What no step has matched is paired all the same; groups of blocks and predictions come out.

Protocol: docs/protocols/omnidocbench.md#leftovers, #joined-entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loupe.benchmarks.omnidocbench.match.assignment import Key, Match, reported_edit
from loupe.benchmarks.omnidocbench.match.distances import Distances
from loupe.benchmarks.omnidocbench.records import Step
from loupe.metrics.assignment import assign


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Blocks and the predictions that they are matched with (none: an empty key), as one sample has them."""

    blocks: tuple[int, ...]
    key: Key = ()
    #: What upstream reports; `distance` is what the step has really found.
    edit: float = 1.0
    step: Step = "none"
    distance: float = 1.0


def groups_of(
    matches: Mapping[Key, Sequence[Match]], truth: Sequence[str], predicted: Sequence[str], distances: Distances
) -> list[Group]:
    """All blocks: those matched, in the order of their keys; the leftovers; and at the end those without prediction."""
    groups = [_group(key, found, truth, predicted) for key, found in matches.items() if found]
    groups += _leftovers(matches, distances)
    covered = {block for group in groups for block in group.blocks}
    return groups + [Group(blocks=(block,)) for block in range(len(truth)) if block not in covered]


def plain_groups(distances: Distances) -> list[Group]:
    """Each block with the prediction that one assignment of everything gives it, however far."""
    column_of = dict(zip(*(side.tolist() for side in assign(distances)), strict=True))
    groups = []
    for row in range(len(distances)):
        column = column_of.get(row)
        if column is None:
            groups.append(Group(blocks=(row,)))
        else:
            distance = float(distances[row, column])
            groups.append(
                Group(blocks=(row,), key=(column,), edit=distance, step="plain assignment", distance=distance)
            )
    return groups


def _group(key: Key, found: Sequence[Match], truth: Sequence[str], predicted: Sequence[str]) -> Group:
    blocks = sorted(match.block for match in found)
    last = found[-1].step
    return Group(
        blocks=tuple(blocks),
        key=key,
        edit=reported_edit(key, blocks, truth, predicted),
        step=last,
        distance=max(match.distance for match in found if match.step == last),
    )


def _leftovers(matches: Mapping[Key, Sequence[Match]], distances: Distances) -> Iterator[Group]:
    """Pairs of what is left on both sides, without any bound; predictions beyond that are lost."""
    blocks, predictions = _left_in_set_order(matches, distances)
    if not blocks or not predictions:
        return
    left = distances[blocks][:, predictions]
    for row, column in zip(*assign(left), strict=True):
        yield Group(
            blocks=(blocks[row],), key=(predictions[column],), step="leftover", distance=float(left[row, column])
        )


def _left_in_set_order(matches: Mapping[Key, Sequence[Match]], distances: Distances) -> tuple[list[int], list[int]]:
    """Blocks and predictions in no key, in the order in which CPython walks a set of small integers.

    Upstream takes one set from another, and ties of the assignment as well as the order of samples follow from how the
    result is walked: {2, 5, 9} gives 9, 2, 5. So these must be differences of real sets, made as there.
    """
    rows, columns = distances.shape
    used_blocks = {match.block for found in matches.values() for match in found}
    used_predictions = {index for key in matches for index in key}
    return list(set(range(rows)) - used_blocks), list(set(range(columns)) - used_predictions)
