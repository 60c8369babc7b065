"""The official interval and permutation test of olmOCR-Bench (docs/protocols/olmocr_bench.md#scores).

Upstream draws from NumPy's global generator without a seed; given one, the numbers here are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLES = 1000
PERMUTATIONS = 10_000


def bootstrap_interval(
    scores: Sequence[float],
    splits: Sequence[int] | None = None,
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentiles of the mean of category means, each category resampled on its own; without `splits`, of the mean.

    `splits` are the sizes of the categories, in the order of the scores. No scores: (0, 0). Raises ValueError if the
    sizes do not add up.
    """
    if not scores:
        return 0.0, 0.0
    generator = np.random.RandomState(seed)
    parts = list(_parts(np.array(scores), splits))
    means = [
        np.mean([np.mean(generator.choice(part, size=len(part), replace=True)) for part in parts if len(part)])
        for _ in range(samples)
    ]
    alpha = (1 - level) / 2
    return float(np.percentile(means, alpha * 100)), float(np.percentile(means, (1 - alpha) * 100))


def permutation_test(
    scores_a: Sequence[float],
    scores_b: Sequence[float],
    splits_a: Sequence[int] | None = None,
    splits_b: Sequence[int] | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[float, float]:
    """Difference of two candidates and its p-value: scores are shuffled between them within each category, unpaired.

    Nothing to compare: (0, 1). Raises ValueError if the sizes of categories do not add up.
    """
    if not scores_a or not scores_b:
        return 0.0, 1.0
    generator = np.random.RandomState(seed)
    ours, theirs = np.array(scores_a, float), np.array(scores_b, float)
    observed = _mean_of_means(ours, splits_a) - _mean_of_means(theirs, splits_b)
    pairs = list(zip(_parts(ours, splits_a), _parts(theirs, splits_b), strict=False))
    pools = [np.concatenate(pair) for pair in pairs]
    extreme = 0
    for _ in range(permutations):
        if splits_a is not None or splits_b is not None:
            pools = [np.concatenate(pair) for pair in pairs]
        # Without categories upstream shuffles what the last round has shuffled; no matter but for the seed.
        shuffled_a, shuffled_b = [], []
        for (part_a, _), pool in zip(pairs, pools, strict=True):
            generator.shuffle(pool)
            shuffled_a.append(pool[: len(part_a)])
            shuffled_b.append(pool[len(part_a) :])
        difference = _mean_of_means(np.concatenate(shuffled_a), splits_a) - _mean_of_means(
            np.concatenate(shuffled_b), splits_b
        )
        extreme += abs(difference) >= abs(observed)
    return float(observed), extreme / permutations


def _parts(scores: Floats, splits: Sequence[int] | None) -> Iterator[Floats]:
    """The scores of each category."""
    if splits is None:
        yield scores
        return
    if sum(splits) != len(scores):
        raise ValueError(f"the categories have {sum(splits)} scores, but there are {len(scores)}")
    start = 0
    for size in splits:
        yield scores[start : start + size]
        start += size


def _mean_of_means(scores: Floats, splits: Sequence[int] | None) -> float:
    if splits is None:
        return float(np.mean(scores))
    means, start = [], 0
    for size in splits:
        if size > 0:
            means.append(np.mean(scores[start : start + size]))
        start += size
    return float(np.mean(means)) if means else 0.0
