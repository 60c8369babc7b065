"""Precision, recall and F1 of the characters found in their places (docs/protocols/cdm.md#scores)."""

from __future__ import annotations

from dataclasses import dataclass

from loupe.metrics.cdm.profiles import CdmProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmScore:
    """How much of a formula is drawn where it should be. All values 0..1, higher is better.

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
        """Whether the formula counts for the expression rate."""
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
