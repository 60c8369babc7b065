"""Student's t distribution for whole degrees of freedom, so that small benchmarks need no SciPy.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 26.7.3, 26.7.4 and, above 1,000 degrees, the
first terms of 26.7.5. Error below 1e-9 up to 1,000 degrees of freedom, below 1e-5 above.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_SERIES_UP_TO = 1000


def t_cumulative(t: float, degrees: int) -> float:
    """Probability that a t variable is below `t`. `degrees` ≥ 1."""
    if degrees > _SERIES_UP_TO:
        return _NORMAL.cdf(t - (t**3 + t) / (4 * degrees))
    angle = math.atan2(abs(t), math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, degrees + odd, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + math.copysign(within, t) / 2


def t_density(t: float, degrees: int) -> float:
    """Density of Student's t at `t`. `degrees` ≥ 1."""
    factor = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    return math.exp(factor - (degrees + 1) / 2 * math.log1p(t * t / degrees))


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: int) -> float:
    """The t below which a t variable lies with this probability. 0 < `probability` < 1, `degrees` ≥ 1."""
    if degrees > _SERIES_UP_TO:
        z = _NORMAL.inv_cdf(probability)
        return z + (z**3 + z) / (4 * degrees)
    # Newton's steps, kept between ends that close in: far out in the tails of few degrees he alone would jump about.
    low, high, t = -1e9, 1e9, _NORMAL.inv_cdf(probability)
    for _ in range(120):
        excess = t_cumulative(t, degrees) - probability
        low, high = (t, high) if excess < 0 else (low, t)
        density = t_density(t, degrees)
        step = excess / density if density else math.inf
        last, t = t, t - step if low < t - step < high else (low + high) / 2
        if abs(t - last) <= 1e-15 * max(1.0, abs(t)):
            break
    return t
