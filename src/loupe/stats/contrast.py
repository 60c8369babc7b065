"""What the exchanges of two runs say of their difference: p-value, interval and standard error, from the same draws.

The interval holds every difference δ that the permutation test does not reject: δ is taken from each cluster by its
weight, and the runs are exchanged again. With D the difference, Dₛ that of exchange s and wₛ the weight that keeps its
sign less the one that loses it, s is at least as far apart as the data if |Dₛ − δ wₛ| ≥ |D − δ|. That holds for all δ
between two ends around D, so p(δ) counts the exchanges whose ends enclose δ, and the interval lies between two of them.
0 lies outside of it exactly where p < level. Source: E. S. Edgington and P. Onghena, "Randomization Tests" (2007),
chapter 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from loupe.stats.bounds_of_unread import Contributions
from loupe.stats.clusters import Floats

#: The kind of a difference's interval, or why there is none: exchanges of the runs, or bounds of unread documents.
IntervalKind: TypeAlias = Literal[
    "permutation",
    "unread",
    "none: too few clusters",
    "none: not computed in both runs",
    "none: no scale bounds it",
]
#: Differences of equal sums may differ by rounding (times the value, if that is larger); so much counts as reaching.
_SLACK = 1e-12
_ROUNDED = 1e-9


@dataclass(frozen=True, slots=True)
class Contrast:
    """One measure of two runs: the difference, and the ends between which each exchange reaches it, both sorted.

    The runs as they are count as an exchange. `error` is the standard error of the difference; None where the exchanges
    have no spread. `contributions` bound what documents not read may change; None if unknown.
    """

    difference: float
    lows: Floats
    highs: Floats
    error: float | None
    contributions: Contributions | None = None

    def p_value(self) -> float:
        """Two-sided: the share of exchanges that set the runs at least as far apart. Identical runs: 1."""
        below = int(np.searchsorted(self.lows, 0.0, side="right"))
        above = self.highs.size - int(np.searchsorted(self.highs, 0.0, side="left"))
        return min(below, above) / self.lows.size

    def interval(self, level: float, *, clear: bool | None = None) -> tuple[float, float] | None:
        """Return the differences whose p-value is `level` or more.

        If few documents carry the difference, or the test is too weak for this level, return those that documents not
        drawn may still bring about. 0 lies outside exactly if the difference is `clear` (default: p is below `level`);
        an end that says otherwise is replaced by that of the test.
        """
        tested = ends = self._not_rejected(level)
        if self.contributions is not None and self.kind(level) == "unread":
            ends = self.contributions.likely_ends(level)
        if ends is None:
            return None
        low, high = min(ends[0], self.difference), max(ends[1], self.difference)
        if not (self.p_value() < level if clear is None else clear):
            return min(low, 0.0), max(high, 0.0)
        least, most = tested or (0.0, 0.0)
        if self.difference > 0:
            return low if low > 0 else max(least, _ROUNDED), high
        return low, high if high < 0 else min(most, -_ROUNDED)

    def kind(self, level: float) -> IntervalKind:
        """Return which kind of interval there is at this level."""
        tested = self._not_rejected(level)
        if self.contributions is not None and (tested is None or self.contributions.sparse):
            return "unread"
        return "none: no scale bounds it" if tested is None else "permutation"

    def bounds(self, level: float) -> tuple[float, float] | None:
        """Return bounds of the difference that hold whatever the documents not read are like, None if unknown."""
        return None if self.contributions is None else self.contributions.worst_ends(level)

    def _not_rejected(self, level: float) -> tuple[float, float] | None:
        """Return the ends by exchanges alone; None if all clusters differ alike, or are too few for this level."""
        least = math.ceil(level * self.lows.size - _SLACK)
        if least < 1 or self.error is None:
            return None
        low, high = float(self.lows[least - 1]), float(self.highs[-least])
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def contrast(
    exchanged: Floats, weights: Floats, contributions: Contributions | None = None, *, clusters: int
) -> Contrast | None:
    """Of the differences in all exchanges and the weights that keep their sign (−1..1); `clusters` have the measure.

    The first exchange is the runs as they are. None where most exchanges do not define the measure, or a single cluster
    has it. An exchange without it speaks against no difference.
    """
    difference = float(exchanged[0])
    defined = np.isfinite(exchanged) & np.isfinite(weights)
    if clusters < 2 or not math.isfinite(difference) or 2 * np.count_nonzero(defined) <= exchanged.size:
        return None
    rest = exchanged - difference * weights
    slack = _SLACK * max(1.0, abs(difference))
    spread = float(np.sqrt(np.mean(rest[defined] ** 2))) if contributions is None else contributions.spread()
    with np.errstate(divide="ignore", invalid="ignore"):
        more, less = np.maximum(1 + weights, 0.0), np.maximum(1 - weights, 0.0)
        up = np.fmax((slack + rest) / more, (slack - rest) / less)
        down = np.fmax((slack + rest) / less, (slack - rest) / more)
    up, down = (np.where(defined, reach, np.inf) for reach in (up, down))
    return Contrast(
        difference=difference,
        lows=np.sort(difference - down),
        highs=np.sort(difference + up),
        error=spread * math.sqrt(clusters / (clusters - 1)) if spread > slack else None,
        contributions=contributions,
    )
