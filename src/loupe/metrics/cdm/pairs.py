"""CDM of pairs: render both sides, match their boxes. The public side of the metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from loupe.metrics.arguments import check_texts, is_several, wrong_type
from loupe.metrics.cdm.profiles import CdmProfile

if TYPE_CHECKING:
    from loupe.metrics.cdm.drawing.rendering import RenderCache, Rendering

#: Left, top, right, bottom in pixels of the drawing; empty without ink.
CharacterBox: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmCharacter:
    """A character as it was drawn: its token, its box in pixels of the drawing, and whether it has a counterpart."""

    token: str
    box: CharacterBox
    matched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmResult:
    """The share of a formula that is drawn where it should be: 0..1, higher is better, rounded to three places.

    `counted`: false where the profile leaves the pair out of its mean, because the ground truth does not render. A side
    that does not render says why in its `…_failure` (see `Rendering`); the zeros then say only that.
    """

    precision: float
    recall: float
    f1: float
    counted: bool
    prediction: tuple[CdmCharacter, ...]
    reference: tuple[CdmCharacter, ...]
    prediction_size: tuple[int, int]
    reference_size: tuple[int, int]
    prediction_failure: str
    reference_failure: str
    profile: str

    @property
    def is_exact(self) -> bool:
        """True if the pair counts for CDM ExpRate."""
        return self.f1 == 1.0


def cdm(
    prediction: str,
    reference: str,
    *,
    profile: str = "unimernet",
    cache: Path | None = None,
) -> CdmResult:
    """Compare two LaTeX formulas as they are drawn: which characters are where they should be.

    The result has `f1`, `precision` and `recall` (0..1, higher is better), and the characters of both sides with their
    boxes. A formula that cannot be drawn, or draws nothing, scores 0.0, and `prediction_failure` or `reference_failure`
    says why. `$` around a formula may stay. Many pairs are some hundred times faster together: `cdm_pairs`.

    `profile`: `unimernet`, `omnidocbench`, `omnidocbench_v16`, `mdpbench` or `omnidocbench_pdflatex`; they give
    different scores. `cache`: a folder that keeps drawings. Source: Wang et al., CVPR 2025, docs/metrics/cdm.md. Needs
    TeX: raises MissingTexError without it, with the command that installs it; ValueError for an unknown profile.

    >>> found = cdm("y=2x+3z", "y = 2z + 3x")  # doctest: +SKIP
    >>> found.f1, [one.token for one in found.prediction if not one.matched]  # doctest: +SKIP
    (0.714, ['x', 'z'])
    """
    check_texts(prediction=prediction, reference=reference)
    return cdm_pairs([(prediction, reference)], profile=profile, cache=cache)[0]


def cdm_pairs(
    pairs: Iterable[tuple[str, str]],
    *,
    profile: str = "unimernet",
    cache: Path | RenderCache | None = None,
) -> list[CdmResult]:
    """Compare pairs (prediction, reference) of LaTeX formulas: a result for each, as from `cdm`, in their order.

    All references are drawn together, then all predictions, never both in one TeX run: what a prediction does cannot
    reach a reference, which is remembered for others. Arguments and errors as for `cdm`.

    >>> [found.f1 for found in cdm_pairs([("x^2", "x^2"), ("x^2", "x^3")])]  # doctest: +SKIP
    [1.0, 0.5]
    """
    pairs = _checked(pairs)
    from loupe.metrics.cdm.drawing.rendering import RenderCache, profile_named, render

    chosen = profile_named(profile)
    memory = cache if isinstance(cache, RenderCache) else RenderCache(cache)
    try:
        true = render([reference for _, reference in pairs], profile=chosen, cache=memory)
        said = render([prediction for prediction, _ in pairs], profile=chosen, cache=memory)
    finally:
        if memory is not cache:
            memory.close()
    return [compared(*sides, chosen) for sides in zip(said, true, strict=True)]


def _checked(pairs: object) -> list[tuple[str, str]]:
    if not is_several(pairs):
        raise wrong_type("pairs", pairs, "a list of (prediction, reference)")
    pairs = list(pairs)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
            raise wrong_type(f"pairs[{place}]", pair, "(prediction, reference)")
        check_texts(**{f"prediction of pairs[{place}]": pair[0], f"reference of pairs[{place}]": pair[1]})
    return pairs


def compared(prediction: Rendering, reference: Rendering, profile: CdmProfile) -> CdmResult:
    """Match the boxes of two renderings as this profile does."""
    from loupe.metrics.cdm.matching import match

    score = match(
        list(zip(prediction.tokens, prediction.boxes, strict=True)),
        list(zip(reference.tokens, reference.boxes, strict=True)),
        prediction_size=prediction.size,
        reference_size=reference.size,
        profile=profile,
    )
    return CdmResult(
        precision=score.precision,
        recall=score.recall,
        f1=score.f1,
        counted=score.counted,
        prediction=_characters(prediction, {one for one, _ in score.matched}),
        reference=_characters(reference, {other for _, other in score.matched}),
        prediction_size=prediction.size,
        reference_size=reference.size,
        prediction_failure=why_not_drawn(prediction),
        reference_failure=why_not_drawn(reference),
        profile=profile.name,
    )


def _characters(rendering: Rendering, matched: set[int]) -> tuple[CdmCharacter, ...]:
    return tuple(
        CdmCharacter(token=token, box=box, matched=index in matched)
        for index, (token, box) in enumerate(zip(rendering.tokens, rendering.boxes, strict=True))
        if box
    )


def why_not_drawn(rendering: Rendering) -> str:
    """Explain why a formula has nothing to compare, "" if it has."""
    if rendering.failure:
        return ": ".join(filter(None, (rendering.failure, rendering.detail)))
    return "" if rendering.has_boxes else "nothing visible"
