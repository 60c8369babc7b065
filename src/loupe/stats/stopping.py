"""Going on until an interval is narrow enough, for pages that can be made as long as they are needed.

Stopping when a fixed width is reached keeps the coverage of an interval in the limit of narrow ones (Y. Chow and H.
Robbins, Annals of Mathematical Statistics 36, 1965). Before that it favours samples whose spread looks small by chance.
Two things hold against it: a least number of clusters, and looks that lie a fifth of the clusters apart. Coverage as
measured: docs/statistics.md.
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
    """Whether to go on after so many clusters (base pages), and with how many more before the next look.

    Raises ValueError for a half-width that no interval can have.
    """
    if not goal.half_width > 0:
        raise ValueError(f"a half-width of {goal.half_width}")
    half = None if found.low is None or found.high is None else (found.high - found.low) / 2
    if half is not None and half <= goal.half_width and clusters >= FEWEST:
        return Look(clusters=clusters, half_width=half, ended="width")
    if clusters >= goal.most:
        return Look(clusters=clusters, half_width=half, ended="pages")
    step = FEWEST - clusters if clusters < FEWEST else max(STEP, math.ceil(_GROWTH * clusters))
    return Look(clusters=clusters, half_width=half, ended="", more=min(step, goal.most - clusters))
