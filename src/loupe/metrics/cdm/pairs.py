"""CDM of pairs: render both sides, match their boxes. The public side of the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

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
    """How much of a formula is drawn where it should be: 0..1, higher is better, rounded to three places.

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
        """Whether the pair counts for CDM ExpRate."""
        return self.f1 == 1.0


def cdm(
    prediction: str,
    reference: str,
    *,
    profile: str = "unimernet",
    cache: Path | None = None,
) -> CdmResult:
    """CDM of one pair of LaTeX formulas. Many pairs are some hundred times faster together: `cdm_pairs`.

    `profile`: `unimernet`, `omnidocbench`, `omnidocbench_v16` or `mdpbench` (they give different scores), or
    `omnidocbench_pdflatex`. `cache`: a folder
    that remembers renderings. Raises MissingTexError, with the command that installs it, without TeX; ValueError for an
    unknown profile.
    """
    return cdm_pairs([(prediction, reference)], profile=profile, cache=cache)[0]


def cdm_pairs(
    pairs: Sequence[tuple[str, str]],
    *,
    profile: str = "unimernet",
    cache: Path | RenderCache | None = None,
) -> list[CdmResult]:
    """CDM of pairs (prediction, reference): all references rendered together, then all predictions.

    Never both in one TeX run: what a prediction does cannot reach a reference, which is remembered for others.
    """
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
    """Why a formula has nothing to compare, "" where it has."""
    if rendering.failure:
        return ": ".join(filter(None, (rendering.failure, rendering.detail)))
    return "" if rendering.has_boxes else "nothing visible"
