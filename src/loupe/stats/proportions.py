"""Shares of yes-or-no outcomes: intervals for one, an exact test for two over the same documents.

Sources: E. B. Wilson, JASA 22 (1927), the score interval; C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), the
exact one; Q. McNemar, Psychometrika 12 (1947), in its exact form: of
the documents on which two models differ, either is right equally often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

CONFIDENCE = 0.95


def wilson_interval(successes: float, n: int, *, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of a share `successes / n`, within 0..1 and never without width; None for n = 0.

    >>> tuple(round(end, 4) for end in wilson_interval(8, 10))
    (0.4902, 0.9433)
    """
    if n <= 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = successes / n, z * z / n
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def exact_interval(successes: int, n: int, *, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of a share by the binomial distribution itself, which covers at least as often as it says.

    None for n = 0.

    >>> tuple(round(end, 4) for end in exact_interval(6, 6))
    (0.5407, 1.0)
    """
    if n <= 0:
        return None
    tail, counts = (1 - confidence) / 2, np.arange(n + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((n - counts[:-1]) / (counts[:-1] + 1)))])

    def at_most(most: int, share: float) -> float:
        right, chances = counts[: most + 1], ways[: most + 1]
        return float(np.exp(chances + right * math.log(share) + (n - right) * math.log1p(-share)).sum())

    low = 0.0 if successes == 0 else _solved(lambda share: 1 - at_most(successes - 1, share) - tail)
    high = 1.0 if successes == n else _solved(lambda share: tail - at_most(successes, share))
    return low, high


def _solved(rising: Callable[[float], float]) -> float:
    """Solve for where a function that rises from below 0 to above 0 on 0..1 is 0."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def mcnemar_exact(a: Sequence[bool], b: Sequence[bool]) -> float:
    """The two-sided p-value of two models that were right or wrong on the same documents, in the same order.

    1.0 where they never differ. Raises ValueError for sequences of different lengths.

    >>> mcnemar_exact([True] * 6 + [False], [False] * 6 + [False])
    0.03125
    """
    only_a = sum(mine and not other for mine, other in zip(a, b, strict=True))
    only_b = sum(other and not mine for mine, other in zip(a, b, strict=True))
    differing = only_a + only_b
    tail = sum(math.comb(differing, k) for k in range(min(only_a, only_b) + 1))
    p_value: float = 2 * tail / (1 << differing)
    return min(1.0, p_value)
