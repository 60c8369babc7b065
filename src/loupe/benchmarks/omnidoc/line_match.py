"""The lines of a page in groups of blocks and predictions: `quick_match`, stage by stage (sections 8.3 to 8.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loupe.benchmarks.omnidoc.assignment import match_blocks
from loupe.benchmarks.omnidoc.distances import Distances, distance_matrix
from loupe.benchmarks.omnidoc.ignored import Sides, set_ignored_aside, stolen_lines, takers
from loupe.benchmarks.omnidoc.leftovers import Group, groups_of, plain_groups
from loupe.benchmarks.omnidoc.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidoc.neighbours import merge_neighbours
from loupe.benchmarks.omnidoc.records import StolenLine
from loupe.benchmarks.omnidoc.upstream_time import upstream_seconds
from loupe.benchmarks.omnidoc.work import TooMuchWorkError, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMatch:
    """Groups in upstream's order, by indices of lines; those of ignored blocks are left out unless they stand alone."""

    groups: Sequence[Group]
    #: How long upstream would take for it, estimated by counting; None for a plain match.
    upstream_seconds: float | None = 0.0
    #: Whether it was beyond all measure, and assigned plainly. No official match is the same: upstream's own plain
    #: assignment (8.7) neither splits arrays nor sorts.
    plain: bool = False
    #: Predictions that an ignored category took, and the nearest block of such a category.
    taken: Mapping[int, int] = field(default_factory=dict)
    stolen: tuple[StolenLine, ...] = ()


def match_lines(truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], work: Work) -> LineMatch:
    """Every counted block is in one group. Predictions that are in none are never scored."""
    if not truth or not predicted:
        return LineMatch(groups=[Group(blocks=(index,)) for index in range(len(truth))])
    distances = distance_matrix([line.norm for line in truth], [line.norm for line in predicted])
    if distances.shape == (1, 1):
        return LineMatch(groups=[_only_pair(float(distances[0, 0]))])
    try:
        return _match_fully(truth, predicted, distances, work)
    except TooMuchWorkError:
        return LineMatch(groups=plain_groups(distances), upstream_seconds=None, plain=True)


def _only_pair(distance: float) -> Group:
    """One block and one prediction are a pair, however unlike, and even if the block is a header (8.3)."""
    return Group(blocks=(0,), key=(0,), edit=distance, step="short cut", distance=distance)


def _match_fully(
    truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], every_distance: Distances, work: Work
) -> LineMatch:
    sides = set_ignored_aside(truth, every_distance)
    blocks = [truth[index].norm for index in sides.truth]
    lines = [predicted[index].norm for index in sides.predicted]
    distances = every_distance[sides.truth][:, sides.predicted]
    columns = merge_neighbours(blocks, lines, distances, work)
    matches = match_blocks(blocks, lines, columns, work)
    return LineMatch(
        groups=[_of_page(group, sides) for group in groups_of(matches, blocks, lines, distances)],
        upstream_seconds=upstream_seconds(blocks, lines, columns, matches),
        taken=takers(truth, every_distance, sides),
        stolen=stolen_lines(truth, predicted, every_distance, sides),
    )


def _of_page(group: Group, sides: Sides) -> Group:
    """The same by the indices of all lines."""
    return replace(
        group,
        blocks=tuple(sides.truth[index] for index in group.blocks),
        key=tuple(sides.predicted[index] for index in group.key),
    )
