"""What difference so many documents could have shown at all, and how many would show a given one.

If most documents differ, an effect shifts them all. Source: H. Bloom, "Minimum Detectable Effects", Evaluation Review
19 (1995): the smallest true difference that a paired test at 5 % finds in four of five cases is (t(97.5 %) + t(80 %)) ·
standard error. Unequal documents count by their effective number, 1 / Σ w² (L. Kish, "Survey Sampling", 1965).
If few documents differ, or all by as much (right and wrong answers), an effect makes more of them differ: the power is
that of McNemar's exact test, with the differing documents that the effect adds.
Without any spread: the exact bound of C. Clopper & E. Pearson, Biometrika 26 (1934). docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from loupe.stats.bootstrap import CONFIDENCE
from loupe.stats.bounds_of_unread import evidence
from loupe.stats.clusters import Floats
from loupe.stats.contrast import Contrast
from loupe.stats.student import t_quantile

#: How often a difference of this size is to be found.
POWER = 0.80
#: Nobody has more documents than this.
MOST = 1_000_000
_FEWEST = 6
#: Unequal documents that are worth fewer than this tell too little of their spread.
_FEW_UNEQUAL = 8
#: With more differing documents on average, their number is taken to be normal.
_MOST_COUNTED = 80
#: So many differing documents are hardly ever exceeded where `_MOST_COUNTED` are expected.
_TABLE = 140
_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
_STEPS = 30


@dataclass(frozen=True, slots=True)
class Pilot:
    """The difference that documents read so far have shown, as a forecast for more documents of their kind.

    `effective` documents of equal weight tell as much as the `documents` read. `error` is the standard error of the
    difference, whose square is known with a relative variance of `doubt`. If few documents differ or all by as much,
    `size` is by how much one does, and `share` how many do.
    """

    difference: float
    error: float
    documents: int
    effective: float
    doubt: float
    size: float = 0.0
    share: float = 0.0

    @staticmethod
    def of(contrast: Contrast, documents: int) -> Pilot | None:
        """Return the forecast that a comparison allows.

        None if its documents all differ alike, or are worth no more than five of equal weight.
        """
        if contrast.error is None:
            return None
        seen = contrast.contributions
        if seen is None:
            return Pilot(contrast.difference, contrast.error, documents, documents, 2 / (documents - 1))
        effective = min(seen.effective, float(documents))
        # A document that outweighs all others is no sample of which more would show a difference.
        if effective <= _FEWEST - 1:
            return None
        error = seen.spread() * math.sqrt(effective / (effective - 1))
        rest = seen.apart - contrast.difference * seen.weights
        doubt = max(1 / evidence(rest) - 1 / documents, 2 / (effective - 1))
        found = Pilot(contrast.difference, error, documents, effective, doubt)
        if not (seen.sparse or seen.alike):
            return found
        moved = float((seen.apart**2).sum())
        size = moved / float((np.abs(seen.apart) * seen.weights).sum())
        share = min(moved * seen.effective / size**2, 1.0)
        return replace(found, effective=max(effective, _FEWEST), size=size, share=share)

    @property
    def rough(self) -> bool:
        """True if documents are so unequal that the power may be 70 %, and the range hold with 85 %."""
        return self.effective < min(_FEW_UNEQUAL, self.documents - 1) or self.effective < self.documents / 4

    def detectable(self) -> float:
        """Return the smallest true difference that as many documents show with a power of 80 %."""
        if not self.size:
            return _factor(self.effective) * self.error
        # What chance does not explain of the difference is an effect; the rest of what differs does so either way.
        differs = self.difference / self.size
        effect = min(math.sqrt(max(differs**2 - self.share / self.effective, 0.0)), self.share)
        return self.size * _detectable_share(round(self.effective), round((self.share - effect) / 2, 6))

    def needed(self, difference: float | None = None, *, deviations: float = 0.0) -> int | None:
        """Return how many documents show a difference (default: the one seen) with a power of 80 %.

        None if more than a million do not. Where an effect makes more documents differ, take those that differ either
        way to be more than seen, by so many standard deviations.
        """
        true = abs(self.difference if difference is None else difference)
        if self.size:
            either = max(self.share - abs(self.difference) / self.size, 0.0) / 2
            either = max(either + deviations * math.sqrt(either / self.effective), 0.0)
            effect = min(true / self.size, 1.0)
            worse = min(either, (1 - effect) / 2)
            found = _least(_mcnemar(effect + worse, worse))
        else:
            spread = self.error * math.sqrt(self.effective)
            found = _least(lambda count: POWER if _factor(count) * spread <= true * math.sqrt(count) else 0.0)
        if found is None:
            return None
        count = math.ceil(found * self.documents / self.effective - 1e-9)
        return max(count, _FEWEST) if count <= MOST else None

    def needed_between(self, interval: tuple[float, float] | None) -> tuple[int, int | None]:
        """Return the numbers of documents between which the needed one lies with 95 %; None: no largest one is known.

        `interval` is that of the difference.
        """
        if self.size and interval is not None:
            near, far = sorted(map(abs, interval))
            near = near if interval[0] * interval[1] > 0 else 0.0
        else:
            # The interval of the effect in units of its spread, which is not known either (noncentral t).
            t = abs(self.difference) / self.error
            reach = _Z * math.sqrt(1 + t * t * self.doubt / 4)
            near, far = max(t - reach, 0.0) * self.error, (t + reach) * self.error
        return self.needed(far, deviations=-1) or MOST, self.needed(near, deviations=1) if near else None


def unseen_share(clusters: int) -> float:
    """The share of documents that could be unlike all of these: with a larger one, chance hides it in under 2.5 %.

    >>> round(unseen_share(8), 4)
    0.3694
    """
    return float(1 - ((1 - CONFIDENCE) / 2) ** (1 / clusters))


def clusters_without_loss(share: float) -> int:
    """How many clusters exclude that this share or more could be unlike all of them; `share` between 0 and 1.

    >>> clusters_without_loss(0.02), unseen_share(183) < 0.02 < unseen_share(182)
    (183, True)
    """
    return math.floor(math.log((1 - CONFIDENCE) / 2) / math.log1p(-share)) + 1


def _factor(clusters: float) -> float:
    """Return t(97.5 %) + t(80 %) with one degree of freedom less than clusters, straight between whole numbers."""
    degrees = max(1.0, clusters - 1)
    whole = math.floor(degrees)
    low, high = (t_quantile((1 + CONFIDENCE) / 2, each) + t_quantile(POWER, each) for each in (whole, whole + 1))
    return low + (degrees - whole) * (high - low)


def _least(power: Callable[[int], float]) -> int | None:
    """Return the least number of documents with enough power, which grows with them."""
    if power(MOST) < POWER:
        return None
    low, high = _FEWEST - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


@lru_cache(maxsize=4096)
def _detectable_share(documents: int, either: float) -> float:
    """Return the smallest effect, in parts of the documents, that McNemar's test finds in four of five cases.

    `either` is the part of documents on which one engine is better by chance, and again the other.
    """
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        rest = min(either, (1 - middle) / 2)
        enough = _mcnemar(middle + rest, rest)(documents) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def _mcnemar(better: float, worse: float) -> Callable[[int], float]:
    """Return the power of McNemar's exact test by the number of documents.

    One engine is right alone on a share `better` of the documents, and the other on `worse`.

    >>> round(_mcnemar(1.0, 0.0)(6), 4), round(_mcnemar(0.25, 0.05)(50), 2)
    (1.0, 0.7)
    """
    differing = min(better + worse, 1 - 1e-12)
    found = _found(better / (better + worse)) if better > 0 else np.zeros(_TABLE)

    def power(documents: int) -> float:
        expected = documents * differing
        if expected > _MOST_COUNTED:
            apart = documents * (better - worse) - 1 - _Z * math.sqrt(expected)
            return _NORMAL.cdf(apart / math.sqrt(max(documents * (differing - (better - worse) ** 2), 1e-9)))
        counts = np.arange(min(documents, _TABLE - 1))
        steps = np.log((documents - counts) / (counts + 1)) + math.log(differing) - math.log1p(-differing)
        chances = np.exp(np.concatenate([[0.0], np.cumsum(steps)]) + documents * math.log1p(-differing))
        return float(chances @ found[: chances.size])

    return power


def _found(better: float) -> Floats:
    """Return how often the test rejects for 0, 1, 2, … differing documents, of which this share is for one engine."""
    combinations, least = _rejecting()
    counts = np.arange(_TABLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(counts > 0, counts * np.log1p(-better), 0.0)
    chances = np.exp(combinations + np.subtract.outer(counts, counts) * math.log(better) + lost)
    found: Floats = np.where(counts <= least[:, None], chances, 0.0).sum(axis=1)
    return found


@lru_cache(maxsize=1)
def _rejecting() -> tuple[Floats, Floats]:
    """Return log C(m, k), and how many of m differing documents may be for the worse engine (-1: none) at p < 5 %."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, _TABLE)))])
    rows, columns = np.indices((_TABLE, _TABLE))
    combinations = np.where(columns <= rows, logs[rows] - logs[columns] - logs[np.abs(rows - columns)], -np.inf)
    below = np.cumsum(np.exp(combinations - np.arange(_TABLE)[:, None] * math.log(2)), axis=1)
    return combinations, np.count_nonzero(2 * below < 1 - CONFIDENCE, axis=1) - 1.0
