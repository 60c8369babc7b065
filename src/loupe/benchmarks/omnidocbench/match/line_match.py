"""The lines of a page in groups of blocks and predictions: `quick_match`, stage by stage.

Protocol: docs/protocols/omnidocbench.md#quick-match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.match.assignment import match_blocks
from loupe.benchmarks.omnidocbench.match.distances import Distances, distance_matrix
from loupe.benchmarks.omnidocbench.match.ignored import set_ignored_aside, stolen_lines, takers
from loupe.benchmarks.omnidocbench.match.joined_columns import merge_neighbours
from loupe.benchmarks.omnidocbench.match.leftovers import Group, groups_of, plain_groups
from loupe.benchmarks.omnidocbench.match.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidocbench.records import StolenLine
from loupe.benchmarks.omnidocbench.scores.upstream_time import upstream_seconds
from loupe.benchmarks.omnidocbench.work import TooMuchWorkError, Work

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMatch:
    """Groups in upstream's order, by indices of lines; those of ignored blocks are left out unless they stand alone."""

    groups: Sequence[Group]
    #: How long upstream would take for it, estimated by counting; None for a plain match.
    upstream_seconds: float | None = 0.0
    #: Whether it was beyond all measure, and assigned plainly. No official match is the same: upstream's own plain
    #: assignment (#time-limit) neither splits arrays nor sorts.
    plain: bool = False
    #: Predictions that an ignored category took, and the nearest block of such a category.
    taken: Mapping[int, int] = field(default_factory=dict)
    stolen: tuple[StolenLine, ...] = ()
    #: The groups of the ignored blocks, matched with the predictions that were taken.
    ignored: Sequence[Group] = ()


def match_lines(truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], work: Work, rules: Rules) -> LineMatch:
    """Every counted block is in one group. Predictions that are in none are never scored."""
    if not truth or not predicted:
        return LineMatch(groups=[Group(blocks=(index,)) for index in range(len(truth))])
    distances = distance_matrix([line.norm for line in truth], [line.norm for line in predicted])
    if distances.shape == (1, 1):
        return LineMatch(groups=[_only_pair(float(distances[0, 0]))])
    try:
        return _match_fully(truth, predicted, distances, work, rules)
    except TooMuchWorkError:
        return LineMatch(groups=plain_groups(distances), upstream_seconds=None, plain=True)


def _only_pair(distance: float) -> Group:
    """One block and one prediction are a pair, however unlike, and even if the block is a header (#short-cuts)."""
    return Group(blocks=(0,), key=(0,), edit=distance, step="short cut", distance=distance)


def _match_fully(
    truth: Sequence[TruthLine],
    predicted: Sequence[PredictedLine],
    every_distance: Distances,
    work: Work,
    rules: Rules,
) -> LineMatch:
    sides = set_ignored_aside(truth, every_distance)
    part = _Part(truth, predicted, every_distance, sides.truth, sides.predicted)
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    groups, seconds = _matched(part, work, rules)
    return LineMatch(
        groups=groups,
        upstream_seconds=seconds,
        taken=takers(truth, every_distance, sides),
        stolen=stolen_lines(truth, predicted, every_distance, sides),
        ignored=_matched(replace(part, blocks=ignored, lines=sides.taken), work, rules)[0] if sides.taken else (),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines of a page, and which of both sides are matched."""

    truth: Sequence[TruthLine]
    predicted: Sequence[PredictedLine]
    every_distance: Distances
    blocks: Sequence[int]
    lines: Sequence[int]

    def of_page(self, group: Group) -> Group:
        """A group of the part by the indices of all lines."""
        return replace(
            group,
            blocks=tuple(self.blocks[index] for index in group.blocks),
            key=tuple(self.lines[index] for index in group.key),
        )


def _matched(part: _Part, work: Work, rules: Rules) -> tuple[list[Group], float]:
    """The groups of a part, and how long upstream would take for them."""
    blocks = [part.truth[index].norm for index in part.blocks]
    lines = [part.predicted[index].norm for index in part.lines]
    distances = part.every_distance[part.blocks][:, part.lines]
    columns = merge_neighbours(blocks, lines, distances, work, longest_run=rules.longest_run)
    containable = [rules.formulas_are_contained or part.truth[index].category != FORMULA for index in part.blocks]
    matches = match_blocks(blocks, lines, columns, work, containable)
    groups = [part.of_page(group) for group in groups_of(matches, blocks, lines, distances)]
    return groups, upstream_seconds(blocks, lines, columns, matches)
