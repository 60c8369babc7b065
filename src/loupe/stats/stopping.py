"""Going on until an interval is narrow enough, for pages that can be made as long as they are needed.

Stopping when a fixed width is reached keeps the coverage of an interval in the limit of narrow ones (Y. Chow and H.
Robbins, Annals of Mathematical Statistics 36, 1965). Before that it favours moments at which the spread looks small by
chance, above all where few clusters carry all of it: two engines that differ on every twelfth page. No width is
therefore believed before as much evidence is there as `ENOUGH` clusters give that weigh the same, and looks lie a fifth
of the clusters apart. Coverage as measured, with and without: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import resample
from loupe.stats.bounds_of_unread import ENOUGH, evidence
from loupe.stats.clusters import Clustered, Floats
from loupe.stats.comparison import LEVEL
from loupe.stats.estimates import interval_of
from loupe.stats.permutation import contrasts

#: Why nothing more is read: the interval is narrow enough; there may be no more pages; or it goes on.
Ended: TypeAlias = Literal["width", "pages", ""]
#: An interval; None where the draws say nothing.
Ends: TypeAlias = tuple[float, float] | None
#: Clusters before the first look, and between two looks at least.
FEWEST, STEP = 60, 20
#: Share of the clusters that come on top between two looks.
_GROWTH = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How narrow: half of the 95 % interval of `measure`, in its unit ("": the headline); at most `most` clusters.

    `between` names two engines, where the interval is that of their difference.
    """

    half_width: float
    most: int
    measure: str = ""
    between: tuple[str, str] | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What was found after so many clusters: the half-width (None: no interval yet) and how many to read next.

    `ended`: "width" says that the stop was by width, which belongs beside the number; "pages" that none may follow.
    `evidence` is that of so many clusters; below ENOUGH, no width is believed.
    """

    clusters: int
    half_width: float | None
    ended: Ended
    more: int = 0
    evidence: float = 0.0


def look(goal: Goal, analysis: Analysis, runs: Sequence[Clustered]) -> Look:
    """Whether to go on after these scores: of one engine, or of two over the same clusters, whose difference is meant.

    The measure is that of the goal, else the headline of the analysis. Raises ValueError for a half-width that no
    interval can have.
    """
    name = goal.measure or analysis.headline
    found = _one(analysis, runs[0], name) if len(runs) == 1 else _difference(analysis, runs, name)
    return decide(goal, *found, clusters=len(runs[0].labels))


def decide(goal: Goal, ends: Ends, influence: Floats, *, clusters: int) -> Look:
    """The same of an interval, and of how far the value moves without each cluster in turn."""
    if not goal.half_width > 0:
        raise ValueError(f"a half-width of {goal.half_width}")
    half = None if ends is None else (ends[1] - ends[0]) / 2
    found = Look(clusters=clusters, half_width=half, ended="", evidence=evidence(influence))
    believed = clusters >= FEWEST and found.evidence >= ENOUGH
    if half is not None and half <= goal.half_width and believed:
        return msgspec.structs.replace(found, ended="width")
    if clusters >= goal.most:
        return msgspec.structs.replace(found, ended="pages")
    step = FEWEST - clusters if clusters < FEWEST else max(STEP, math.ceil(_GROWTH * clusters))
    return msgspec.structs.replace(found, more=min(step, goal.most - clusters))


def _one(analysis: Analysis, run: Clustered, name: str) -> tuple[Ends, Floats]:
    values = resample(analysis, run).get(name)
    if values is None:
        return None, np.empty(0)
    measure = next(each for each in analysis.measures if each.name == name)
    ends, _ = interval_of(measure, values, run.measures.get(name))
    return ends, values.left_out


def _difference(analysis: Analysis, runs: Sequence[Clustered], name: str) -> tuple[Ends, Floats]:
    found = contrasts(analysis, *runs).get(name)
    # One draw, for the values with each cluster left out.
    first, second = (resample(replace(analysis, draws=1), run).get(name) for run in runs)
    if found is None or first is None or second is None:
        return None, np.empty(0)
    return found.interval(LEVEL), first.left_out - second.left_out
