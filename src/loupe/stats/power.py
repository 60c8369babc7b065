"""What difference so many pages could have shown at all, and how many would show a given one.

Source: H. Bloom, "Minimum Detectable Effects", Evaluation Review 19 (1995): the smallest true difference that a paired
test at 5 % finds in four of five cases is (t(97.5 %) + t(80 %)) · standard error, with n − 1 degrees of freedom.
Without any spread: the exact bound of C. Clopper & E. Pearson, Biometrika 26 (1934). docs/statistics.md.
"""

from __future__ import annotations

import math

from loupe.stats.bootstrap import CONFIDENCE
from loupe.stats.student import t_quantile

#: How often a difference of this size is to be found.
POWER = 0.80
#: Nobody has more documents than this.
MOST = 1_000_000
_FEWEST = 6


def detectable_difference(error: float, clusters: int) -> float:
    """The smallest true difference that so many clusters show with a power of 80 %. `clusters` ≥ 2.

    >>> round(detectable_difference(0.02, 30), 4)
    0.058
    """
    return _factor(clusters) * error


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


def clusters_needed(error: float, clusters: int, difference: float) -> int | None:
    """How many clusters of the same kind would show this difference with a power of 80 %; None: more than a million.

    >>> clusters_needed(0.02, 30, 0.02)
    238
    """
    spread = error * math.sqrt(clusters)

    def enough(count: int) -> bool:
        return _factor(count) * spread / math.sqrt(count) <= abs(difference)

    if not enough(MOST):
        return None
    low, high = _FEWEST - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _factor(clusters: int) -> float:
    degrees = max(1, clusters - 1)
    return t_quantile((1 + CONFIDENCE) / 2, degrees) + t_quantile(POWER, degrees)
