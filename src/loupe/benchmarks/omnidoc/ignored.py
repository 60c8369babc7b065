"""Headers, captions and the like take their predictions before the match proper (section 8.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from loupe.benchmarks.omnidoc.distances import Distances
from loupe.benchmarks.omnidoc.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidoc.records import StolenLine, piece_of

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
    """For each prediction that was taken the nearest block of an ignored category."""
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    return {column: ignored[int(distances[ignored, column].argmin())] for column in sides.taken}


def stolen_lines(
    truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], distances: Distances, sides: Sides
) -> tuple[StolenLine, ...]:
    """Counted blocks whose one good prediction was taken, and by what (flag header-steals-line, section 14)."""
    if not sides.taken or not sides.truth:
        return ()
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    left = distances[:, sides.predicted].min(axis=1, initial=1.0)
    found = []
    for row in sides.truth:
        column = min(sides.taken, key=lambda column: distances[row, column])
        if distances[row, column] < min(TAKES, left[row]):
            thief = min(ignored, key=lambda other: distances[other, column])
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
