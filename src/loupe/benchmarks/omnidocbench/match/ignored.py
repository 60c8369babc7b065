"""Headers, captions and the like take their predictions before the match proper.

Protocol: docs/protocols/omnidocbench.md#ignored-categories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from loupe.benchmarks.omnidocbench.match.assignment import MATCHES
from loupe.benchmarks.omnidocbench.match.distances import Distances
from loupe.benchmarks.omnidocbench.match.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidocbench.records import StolenLine, piece_of

#: A prediction closer than this to a block of an ignored category is taken out of the match.
TAKES = 0.25


class Sides(NamedTuple):
    """The indices of the lines that go on into the match, and of the predictions that do not."""

    truth: list[int]
    predicted: list[int]
    taken: list[int]


def set_ignored_aside(truth: Sequence[TruthLine], distances: Distances) -> Sides:
    """Part the lines: `distances` are those of all lines of the ground truth (rows) and all predicted ones (columns).

    A prediction goes to an ignored category even if it fits a counted block as well or better, as upstream.
    """
    counted = [row for row, line in enumerate(truth) if not line.ignored]
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    takes = (distances[ignored] < TAKES).any(axis=0)
    return Sides(
        truth=counted,
        predicted=np.flatnonzero(~takes).tolist(),
        taken=np.flatnonzero(takes).tolist(),
    )


def takers(truth: Sequence[TruthLine], distances: Distances, sides: Sides) -> dict[int, int]:
    """For each prediction that was taken the nearest block of an ignored category; of equal ones, each takes one."""
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    found: dict[int, int] = {}
    free = np.ones(len(ignored), dtype=bool)
    for column in sides.taken:
        nearest = distances[ignored, column] == distances[ignored, column].min()
        place = int((nearest & free if (nearest & free).any() else nearest).argmax())
        free[place] = False
        found[column] = ignored[place]
    return found


def stolen_lines(
    truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], distances: Distances, sides: Sides
) -> tuple[StolenLine, ...]:
    """Counted blocks whose best prediction was taken, and by what.

    Flag `header-steals-line`: docs/protocols/omnidocbench.md#modes.
    One that is too far from the block for a match (#assignment) is no loss.
    """
    if not sides.taken or not sides.truth:
        return ()
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    left = distances[:, sides.predicted].min(axis=1, initial=math.inf)
    found = []
    for row in sides.truth:
        column = sides.taken[int(distances[row, sides.taken].argmin())]
        if distances[row, column] <= MATCHES and distances[row, column] < left[row]:
            thief = ignored[int(distances[ignored, column].argmin())]
            found.append(
                StolenLine(
                    piece=piece_of(predicted[column].source),
                    anno_ids=truth[row].block.parts,
                    distance=float(distances[row, column]),
                    ignored_category=truth[thief].category,
                    ignored_distance=float(distances[thief, column]),
                )
            )
    return tuple(found)
