"""Match drawn tokens of a prediction with those of the ground truth, and score them.

Protocol: docs/protocols/cdm.md#assignment, #ransac and #scores.
Every token is assigned one of the other side, at the least total cost of wrong tokens, distances and disorder. Of the
pairs, those count that agree with a shift and a scale of the page and are not plainly different tokens.

The same numbers as `skimage.measure.ransac` 0.20 with CDM's model of a transform, seeded with 42, without scikit-image;
and those of OmniDocBench 1.6, which has a loop of its own. NumPy's generator draws the samples, so they depend on how
many points there are and on nothing else, and are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from loupe.metrics.assignment import assign
from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.tokens import similar_name

Box = Sequence[float]  # x0, y0, x1, y1 in pixels; empty where the token left no ink
TokenBox = tuple[str, Box]
Size = tuple[float, float]  # width, height in pixels

_TOKEN_WEIGHT = 1.0
_POSITION_WEIGHT = 0.05
_ORDER_WEIGHT = 0.15
_OTHER_TOKEN = 1.0
_UNDEFINED_COST = 100.0

Costs = NDArray[np.float64]


def match(
    prediction: Sequence[TokenBox],
    reference: Sequence[TokenBox],
    *,
    prediction_size: Size,
    reference_size: Size,
    profile: CdmProfile,
) -> CdmScore:
    """The score of one pair of rendered formulas; tokens without a box are left out first."""
    predicted = [position for position, (_, box) in enumerate(prediction) if len(box)]
    true = [position for position, (_, box) in enumerate(reference) if len(box)]
    if not predicted or not true:
        return score_without_boxes(profile, reference_has_boxes=bool(true))
    found = _assigned(
        [prediction[position] for position in predicted],
        [reference[position] for position in true],
        prediction_size=prediction_size,
        reference_size=reference_size,
        profile=profile,
    )
    matched, displaced, replaced = (tuple((predicted[c], true[r]) for r, c in pairs) for pairs in found)
    precision, recall, f1 = score_of_counts(len(matched), len(predicted), len(true))
    found_predicted, found_true = {pair[0] for pair in matched}, {pair[1] for pair in matched}
    return CdmScore(
        precision=precision,
        recall=recall,
        f1=f1,
        matched=matched,
        unmatched_prediction=tuple(position for position in range(len(prediction)) if position not in found_predicted),
        unmatched_reference=tuple(position for position in range(len(reference)) if position not in found_true),
        displaced=displaced,
        replaced=replaced,
    )


def _assigned(
    prediction: list[TokenBox],
    reference: list[TokenBox],
    *,
    prediction_size: Size,
    reference_size: Size,
    profile: CdmProfile,
) -> tuple[list[tuple[int, int]], ...]:
    """Positions (reference, prediction) of the pairs that count, of those out of place, and of different tokens."""
    token_cost = _token_cost([token for token, _ in reference], [token for token, _ in prediction], profile)
    true_boxes = np.array([box for _, box in reference], dtype=np.float64)
    predicted_boxes = np.array([box for _, box in prediction], dtype=np.float64)
    cost = (
        _TOKEN_WEIGHT * token_cost
        + _POSITION_WEIGHT * _position_cost(true_boxes, predicted_boxes, reference_size, prediction_size)
        + _ORDER_WEIGHT * _order_cost(len(reference), len(prediction), profile)
    )
    cost[~np.isfinite(cost)] = _UNDEFINED_COST
    rows, columns = assign(cost)
    inliers = consistent_pairs(
        _centres(true_boxes)[rows],
        _centres(predicted_boxes)[columns],
        rounds=profile.ransac_rounds,
        samples=profile.ransac_samples,
        threshold=profile.ransac_threshold,
        tries_all=profile.ransac_tries_all,
    )
    same = token_cost[rows, columns] != _OTHER_TOKEN
    return tuple(
        list(zip(rows[kind].tolist(), columns[kind].tolist(), strict=True))
        for kind in (inliers & same, ~inliers & same, ~same)
    )


def _token_cost(reference: list[str], prediction: list[str], profile: CdmProfile) -> Costs:
    """0 for the same token, a little for one that looks alike, 1 for another."""
    cost = np.ones((len(reference), len(prediction)))
    cost[_equal(reference, prediction, lambda token: similar_name(token, newer=profile.newer_token_map))] = (
        profile.similar_token_cost
    )
    cost[_equal(reference, prediction, str)] = 0.0
    return cost


def _equal(reference: list[str], prediction: list[str], name: Callable[[str], str]) -> NDArray[np.bool_]:
    numbers: dict[str, int] = {}
    number = {token: numbers.setdefault(name(token), len(numbers)) for token in {*reference, *prediction}}
    true, predicted = (np.array([number[token] for token in tokens]) for tokens in (reference, prediction))
    equal: NDArray[np.bool_] = true[:, None] == predicted[None, :]
    return equal


def _position_cost(reference: Costs, prediction: Costs, reference_size: Size, prediction_size: Size) -> Costs:
    """Mean absolute difference of the sides of the boxes, each in parts of its own picture."""
    with np.errstate(divide="ignore", invalid="ignore"):
        true = reference / np.array([*reference_size, *reference_size], dtype=np.float64)
        predicted = prediction / np.array([*prediction_size, *prediction_size], dtype=np.float64)
        total = np.zeros((len(true), len(predicted)))
        for side in range(4):
            total += np.abs(true[:, side, None] - predicted[None, :, side])
    return total / 4


def _order_cost(reference: int, prediction: int, profile: CdmProfile) -> Costs:
    longer = max(reference, prediction)
    true = np.arange(reference) / (longer if profile.shared_order_length else reference)
    predicted = np.arange(prediction) / (longer if profile.shared_order_length else prediction)
    cost: Costs = np.abs(true[:, None] - predicted[None, :])
    return cost


def _centres(boxes: Costs) -> Points:
    """Centres as (y, x)."""
    return np.stack([(boxes[:, 1] + boxes[:, 3]) / 2, (boxes[:, 0] + boxes[:, 2]) / 2], axis=1)


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
    """Mark the pairs that are inliers of a few transforms, found one after the other among the pairs left over."""
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
    """Return the number of trials that find a sample of inliers only, with a probability of one as far as floats can
    tell.
    """
    if inliers == 0:
        return MAX_TRIALS
    miss = max(_EPSILON, 1 - (inliers / count) ** samples)
    return ceil(log(_EPSILON) / log(miss))


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmScore:
    """The share of a formula that is drawn where it should be. All values 0..1, higher is better.

    Values are rounded to three places, as both official programs do: an F1 of 0.9995 and more is 1.0. `matched` pairs
    and `unmatched_…` are positions in the lists of tokens that were given.
    """

    precision: float
    recall: float
    f1: float
    matched: tuple[tuple[int, int], ...] = ()  # (of the prediction, of the ground truth)
    unmatched_prediction: tuple[int, ...] = ()
    unmatched_reference: tuple[int, ...] = ()
    displaced: tuple[tuple[int, int], ...] = ()  # the same token, but not where the others are by shift and scale
    replaced: tuple[tuple[int, int], ...] = ()  # another token in its place
    rendered: bool = True  # false: a side has no boxes, and the zeros say only that
    counted: bool = True  # false: the profile leaves the sample out of the mean

    @property
    def is_exact(self) -> bool:
        """True if the formula counts for the expression rate."""
        return self.f1 == 1.0


def score_of_counts(matched: int, predicted: int, true: int) -> tuple[float, float, float]:
    """Precision, recall and F1, each rounded to three places.

    >>> score_of_counts(2, 3, 4)
    (0.667, 0.5, 0.571)
    """
    return round(matched / predicted, 3), round(matched / true, 3), round(2 * matched / (true + predicted), 3)


def score_without_boxes(profile: CdmProfile, *, reference_has_boxes: bool) -> CdmScore:
    """The score where a side was not rendered: zero, or, where the ground truth failed, perhaps not counted at all."""
    counted = reference_has_boxes or not profile.drops_unrenderable_reference
    return CdmScore(precision=0.0, recall=0.0, f1=0.0, rendered=False, counted=counted)
