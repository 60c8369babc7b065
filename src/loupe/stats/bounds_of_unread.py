"""Compute bounds of a mean that hold whatever the documents are like that were not read.

Source: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005). One document is added that is as bad as any can be, and each of
the n + 1 gets a random weight (exponential, divided by their sum). The bound is a percentile of the weighted mean. For
right and wrong answers it is the exact bound of C. Clopper and E. Pearson; without any difference, of differences up to
1, it is 1 − 0.025^(1/n), the "rule of three". No distribution is known for which it errs more often than it says.

The percentile is computed without draws, by the saddlepoint formula of R. Lugannani and S. Rice, Advances in Applied
Probability 12 (1980), for a sum of exponential variables: within 0.5 % of the bound for n = 5, and on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from loupe.stats.clusters import Floats

#: The evidence of so many clusters is enough to believe a spread.
ENOUGH = 30.0
#: Differences of so many clusters show how large a difference can be.
_SEVERAL = 3.0
#: Few clusters carry an error if they are worth less than this share of all, and what they add is as skewed as this.
_FEW, _SKEWED = 0.3, 0.25
_NORMAL = NormalDist()
_STEPS = 80
#: Ends are found to this part of the range that is left open.
_CLOSE = 1e-7
#: Clusters as close as this differ alike.
_ROUNDED = 1e-12


@dataclass(frozen=True, slots=True)
class Contributions:
    """What each cluster adds to a difference (`apart`) and to its weight (they add up to 1), and what one may add.

    `possible` is the largest difference, either way, that a cluster can have by itself.
    """

    apart: Floats
    weights: Floats
    possible: float

    @property
    def sparse(self) -> bool:
        """True if the clusters seen say little of others: few of them differ, or all that differ do so by as much.

        Few are fewer than a third of them, by their effective number (Σ |d|)² / Σ d²: m if m clusters differ alike,
        0.64 n for normal differences. Right and wrong answers differ alike.
        """
        sizes = np.abs(self.apart)
        largest = float(sizes.max(initial=0.0))
        if largest <= _ROUNDED:
            return True
        sizes /= largest
        few = float(sizes.sum() ** 2) < sizes.size / 3 * float((sizes**2).sum())
        return few or bool(sizes[sizes > _ROUNDED].min() > 1 - 1e-9)

    @property
    def alike(self) -> bool:
        """True if the clusters that differ all do so by as much, for their weight."""
        differing = np.abs(self.apart) > _ROUNDED * self.weights
        sizes = np.abs(self.apart[differing]) / self.weights[differing]
        return not sizes.size or bool(sizes.min() > sizes.max() * (1 - 1e-9))

    def spread(self) -> float:
        """Return the standard deviation of the difference under random exchanges, less its mean."""
        return float(np.linalg.norm(self.apart - float(self.apart.sum()) * self.weights))

    @property
    def effective(self) -> float:
        """The number of clusters of equal weight that tell as much as these: 1 / Σ w²."""
        return 1 / float((self.weights**2).sum())

    def ends(self, level: float) -> tuple[float, float]:
        """Return bounds that hold whatever the clusters not read are like; either end errs in level / 2."""
        return self._ends(level, self.possible, self._average)

    def upper_end(self, level: float) -> float:
        """Return the upper one of `ends`."""
        return self._upper_end(self.apart, level, self.possible, self._average)

    def worst_ends(self, level: float) -> tuple[float, float]:
        """Return `ends` for a cluster not read that may be as large as the largest one read, if that is worse.

        As large as the largest two together if all clusters are worth fewer than half of them by their sizes: others
        may then be larger than any that was read.
        """
        low, high = self.ends(level)
        if float(np.ptp(self.weights)) <= _ROUNDED:
            return low, high
        unequal = 2 * self.effective < np.count_nonzero(self.weights)
        weight = float(np.sort(self.weights)[-2 if unequal else -1 :].sum())
        worst_low, worst_high = self._ends(level, self.possible, weight)
        return min(low, worst_low), max(high, worst_high)

    def likely_ends(self, level: float) -> tuple[float, float]:
        """Return bounds for which clusters not read differ by no more than those read, if several of these differ."""
        rest = self.apart - float(self.apart.sum()) * self.weights
        if np.abs(rest).max() <= _ROUNDED or evidence(rest) < _SEVERAL:
            return self.ends(level)
        return self._ends(level, 0.0, self._average)

    @property
    def _average(self) -> float:
        """The weight of the cluster in which the average unit lies: as large is a cluster not read."""
        return float((self.weights**2).sum() / self.weights.sum())

    def _ends(self, level: float, possible: float, weight: float) -> tuple[float, float]:
        high, low = (self._upper_end(apart, level, possible, weight) for apart in (self.apart, -self.apart))
        return -low, high

    def _upper_end(self, apart: Floats, level: float, possible: float, weight: float) -> float:
        # A composite that is no sum of its parts may be further apart.
        return min(self._upper(apart, level / 2, possible, weight), max(self.possible, abs(float(self.apart.sum()))))

    def _upper(self, apart: Floats, tail: float, possible: float, weight: float) -> float:
        """Return the upper end if a cluster of this weight adds all that is possible, or as much as one read."""
        terms = np.append(apart, max(possible * weight, float(np.abs(apart).max()))), np.append(self.weights, weight)
        low, high = float(apart.sum()), _highest(*terms)
        if high - low <= 0 or chance_above(terms[0] - low * terms[1]) <= tail:
            return max(low, high)
        # False position (Illinois) on the normal scale, on which the chance is nearly straight.
        goal = _NORMAL.inv_cdf(1 - tail)
        at_low, at_high, last = goal - _z(terms[0] - low * terms[1]), -8.0, 0
        for _ in range(_STEPS):
            middle = low + (high - low) * min(max(at_low / (at_low - at_high), 0.001), 0.999)
            here = goal - _z(terms[0] - middle * terms[1])
            if abs(here) < _CLOSE or high - low < _CLOSE * self.possible:
                return middle
            if here > 0:
                low, at_low, at_high, last = middle, here, at_high / (2 if last > 0 else 1), 1
            else:
                high, at_high, at_low, last = middle, here, at_low / (2 if last < 0 else 1), -1
        return high


def evidence(influence: Floats) -> float:
    """Return how many clusters of equal weight tell as much about the spread: (Σ d²)² / Σ d⁴.

    All of them if none differs.

    >>> evidence(np.array([1.0, -1.0, 1.0, -1.0])), evidence(np.array([3.0, 0.0, -3.0, 0.0]))
    (4.0, 2.0)
    """
    known = influence[np.isfinite(influence)]
    apart = known - known.mean() if known.size else known
    largest = float(np.abs(apart).max(initial=0.0))
    if largest <= 1e-15:
        return float(known.size)
    squares = (apart / largest) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def few_carry(losses: Floats) -> bool:
    """Return whether few clusters carry most of an error, so that they say little of other bad ones.

    `losses` are what each cluster adds to the error. Few are fewer than 30 %, by their effective number
    (Σ d)² / Σ d², if the losses are skewed towards large ones.

    >>> few_carry(np.array([8.0, 1.0] + [0.0] * 7)), few_carry(np.array([2.0, 1.0] * 6))
    (True, False)
    """
    largest = float(losses.max(initial=0.0))
    if largest <= _ROUNDED:
        return False
    parts = np.maximum(losses / largest, 0.0)
    if float(parts.sum() ** 2) >= _FEW * parts.size * float((parts**2).sum()):
        return False
    apart = parts - parts.mean()
    return float((apart**3).mean()) > _SKEWED * math.sqrt(float((apart**2).mean())) ** 3


def _highest(apart: Floats, weights: Floats) -> float:
    """Return the largest difference that a cluster has by itself."""
    return float((apart[weights > 0] / weights[weights > 0]).max())


def _z(terms: Floats) -> float:
    """Return above how many standard deviations a normal variable lies with the same chance."""
    return -_NORMAL.inv_cdf(min(max(chance_above(terms), 1e-14), 1 - 1e-14))


def chance_above(terms: Floats) -> float:
    """Return the chance that Σ rᵢ Eᵢ is above 0, the Eᵢ being independent exponential variables of mean 1.

    >>> round(chance_above(np.array([1.0, -3.0])), 2)
    0.25
    """
    largest, smallest = float(terms.max()), float(terms.min())
    if smallest >= 0 or largest <= 0:
        return 1.0 if largest > 0 else 0.0
    low, high, t = 1 / smallest, 1 / largest, 0.0
    close = 1e-9 * min(-low, high)
    for _ in range(_STEPS):
        ratios = terms / (1 - t * terms)
        slope = float(ratios.sum())
        step = -slope / float((ratios**2).sum())
        if abs(step) <= close:
            break
        low, high = (low, t) if slope > 0 else (t, high)
        t = t + step if low < t + step < high else (low + high) / 2
    curvature = math.sqrt(float(((terms / (1 - t * terms)) ** 2).sum()))
    signed = math.copysign(math.sqrt(max(2 * float(np.log1p(-t * terms).sum()), 0.0)), t)
    if abs(signed) < 1e-3:
        return 0.5
    return min(max(_NORMAL.cdf(-signed) + _NORMAL.pdf(signed) * (1 / (t * curvature) - 1 / signed), 0.0), 1.0)
