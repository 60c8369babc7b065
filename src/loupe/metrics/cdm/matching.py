"""Which drawn token of a prediction is which of the ground truth (docs/protocols/cdm.md#assignment to #scores).

Every token is assigned one of the other side, at the least total cost of wrong tokens, distances and disorder. Of the
pairs, those count that agree with a shift and a scale of the page and are not plainly different tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from loupe.metrics.assignment import assign
from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.ransac import Points, consistent_pairs
from loupe.metrics.cdm.scoring import CdmScore, score_of_counts, score_without_boxes
from loupe.metrics.cdm.token_names import similar_name

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
