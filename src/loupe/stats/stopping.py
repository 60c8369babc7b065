"""Going on until an interval is narrow enough, for pages that can be made as long as they are needed.

Stopping when a fixed width is reached keeps the coverage of an interval in the limit of narrow ones (Y. Chow and H.
Robbins, Annals of Mathematical Statistics 36, 1965). Before that it favours samples whose spread looks small by chance.
Three things hold against it: a least number of base pages, looks that lie a fifth of the pages apart, and a width that
must be a little less than what was asked for while pages are few. Coverage as measured: docs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from loupe.stats.comparison import Difference
from loupe.types import Estimate

#: Why nothing more is read: the interval is narrow enough; there may be no more pages; or it goes on.
Ended: TypeAlias = Literal["width", "pages", ""]
#: Clusters before which no width is believed, and between two looks at least.
FEWEST, STEP = 60, 20
#: Share of the clusters that come on top between two looks.
_GROWTH = 0.2
#: Clusters that the width is charged for, once, because it is looked at again and again.
_CHARGED = 8


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
    """

    clusters: int
    half_width: float | None
    ended: Ended
    more: int = 0


def look(goal: Goal, found: Estimate | Difference, clusters: int) -> Look:
    """Whether to go on after so many clusters (base pages), and with how many more.

    The next look is where the width found so far says that the goal is reached, but at most a fifth of the clusters
    away, so that a first impression that was too good or too bad costs little. Raises ValueError for a goal that no
    interval can reach.
    """
    if not goal.half_width > 0:
        raise ValueError(f"a half-width of {goal.half_width}")
    low, high = found.low, found.high
    half = None if low is None or high is None else (high - low) / 2
    if half is not None and clusters >= FEWEST and half * math.sqrt(1 + _CHARGED / clusters) <= goal.half_width:
        return Look(clusters=clusters, half_width=half, ended="width")
    if clusters >= goal.most:
        return Look(clusters=clusters, half_width=half, ended="pages")
    return Look(clusters=clusters, half_width=half, ended="", more=_more(goal, half, clusters))


def _more(goal: Goal, half: float | None, clusters: int) -> int:
    if clusters < FEWEST:
        wanted = FEWEST - clusters
    else:
        most = max(STEP, math.ceil(_GROWTH * clusters))
        needed = most if half is None else math.ceil(clusters * (half / goal.half_width) ** 2) + _CHARGED - clusters
        wanted = min(most, max(STEP, needed))
    return min(wanted, goal.most - clusters)
