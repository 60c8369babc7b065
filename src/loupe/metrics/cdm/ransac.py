"""Pairs of points that agree with one shift and one scale (docs/protocols/cdm.md#ransac).

The same numbers as `skimage.measure.ransac` 0.20 with CDM's model of a transform, seeded with 42, without scikit-image;
and those of OmniDocBench 1.6, which has a loop of its own. NumPy's generator draws the samples, so they depend on how
many points there are and on nothing else, and are kept.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, inf, log
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

MAX_TRIALS: Final = 50
ALL_TRIALS: Final = 500  # of OmniDocBench 1.6, which makes them all
_SEED: Final = 42
_SEED_OF_ALL: Final = 2026
_AT_ONCE: Final = 100
_EPSILON: Final = float(np.finfo(np.float64).eps)

Points = NDArray[np.float64]
Flags = NDArray[np.bool_]


class _Search(Protocol):
    def __call__(self, source: Points, target: Points, *, samples: int, threshold: float) -> Flags: ...


def consistent_pairs(
    source: Points, target: Points, *, rounds: int, samples: int, threshold: float, tries_all: bool = False
) -> Flags:
    """Which pairs are inliers of a few transforms, found one after the other among the pairs left over."""
    search: _Search = inliers_of_all_trials if tries_all else ransac_inliers
    inliers = np.zeros(len(source), dtype=np.bool_)
    if len(source) <= samples:
        return ~inliers
    for _ in range(rounds):
        rest = np.flatnonzero(~inliers)
        if len(rest) <= samples:
            break
        found = search(source[rest], target[rest], samples=samples, threshold=threshold)
        if not found.any():
            break
        inliers[rest[found]] = True
    return inliers


def ransac_inliers(source: Points, target: Points, *, samples: int, threshold: float) -> Flags:
    """The largest set of pairs closer than the threshold to one of the transforms that the samples suggest.

    Among equally large ones, that with the smaller sum of squared residuals, over all pairs.
    """
    count = len(source)
    draws = _sampled(count, samples, MAX_TRIALS, _SEED)
    best: Flags = np.zeros(count, dtype=np.bool_)
    best_count, best_sum, trials, trial = 0, inf, MAX_TRIALS, 0
    # Nearly always the first trial fits all; the others are computed at once, and judged in their order.
    for block in (draws[:1], draws[1:]):
        if trial >= trials:
            break
        squares = _squared_residuals(source, target, block[: trials - trial])
        distances: Points = np.sqrt(squares)
        near: Flags = distances < threshold
        counts = near.sum(axis=1)
        for number in range(len(squares)):
            if trial >= trials:
                break
            trial += 1
            found = int(counts[number])
            if found < best_count:
                continue
            total = _sum_of_squares(distances[number])
            if found > best_count or (found == best_count and total < best_sum):
                best, best_count, best_sum = near[number], found, total
                trials = min(trials, _trials_needed(found, count, samples))
                if total <= 0:
                    return best
    return best


def inliers_of_all_trials(source: Points, target: Points, *, samples: int, threshold: float) -> Flags:
    """The same, as OmniDocBench 1.6 has it: of equally large sets, that with the smaller sum of its own residuals.

    Protocol: docs/protocols/omnidocbench_v16.md#cdm-ransac.
    """
    count = len(source)
    best: Flags = np.zeros(count, dtype=np.bool_)
    best_count, best_sum, made = 0, inf, 0
    # Nearly always the first trial fits all, and then no other can find another set.
    for trials in (1, *range(_AT_ONCE, ALL_TRIALS + 1, _AT_ONCE)):
        draws = _sampled(count, samples, 1 if trials == 1 else ALL_TRIALS, _SEED_OF_ALL)[made:trials]
        made = trials
        distances: Points = np.sqrt(_squared_residuals(source, target, draws))
        near: Flags = distances < threshold
        counts = near.sum(axis=1)
        for number in np.flatnonzero(counts >= max(best_count, 1)).tolist():
            found = int(counts[number])
            if found < best_count:
                continue
            total = float(distances[number][near[number]].sum())
            if found > best_count or total < best_sum:
                best, best_count, best_sum = near[number], found, total
        if best_count == count:
            break
    return best


def _sum_of_squares(distances: Points) -> float:
    """As scikit-image has it, of the roots again: the last bits decide between samples that are equally good."""
    return float(np.dot(distances, distances))


@lru_cache(maxsize=4096)
def _sampled(count: int, samples: int, trials: int, seed: int) -> NDArray[np.intp]:
    generator = np.random.default_rng(seed)
    return np.array([generator.choice(count, samples, replace=False) for _ in range(trials)], dtype=np.intp)


def _squared_residuals(source: Points, target: Points, draws: NDArray[np.intp]) -> Points:
    """Squared distances of the transformed points from their targets: trials x pairs.

    The transform scales about the centre of all points, not of the sample, and so does upstream's.
    """
    drawn_source, drawn_target = source[draws], target[draws]
    source_centre, target_centre = drawn_source.mean(axis=1), drawn_target.mean(axis=1)
    scale = _spread(drawn_target, target_centre) / (_spread(drawn_source, source_centre) + 1e-10)
    centre = source.mean(axis=0)
    moved = scale[:, None, None] * (source - centre) + centre + (target_centre - source_centre)[:, None, :]
    offsets = moved - target
    squares: Points = (offsets * offsets).sum(axis=2)
    return squares


def _spread(points: Points, centre: Points) -> Points:
    offsets = points - centre[:, None, :]
    distances: Points = np.sqrt((offsets * offsets).sum(axis=2)).mean(axis=1)
    return distances


def _trials_needed(inliers: int, count: int, samples: int) -> int:
    """How many trials find a sample of inliers only, with a probability of one as far as floats can tell."""
    if inliers == 0:
        return MAX_TRIALS
    miss = max(_EPSILON, 1 - (inliers / count) ** samples)
    return ceil(log(_EPSILON) / log(miss))
