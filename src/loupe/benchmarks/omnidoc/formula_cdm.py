"""CDM of the display formulas of a page (section 10; the metric: docs/metrics/cdm.md, profile `omnidocbench`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from loupe.benchmarks.formula_images.cdm_scores import CdmOutcome, cdm_outcomes, cdm_warnings, prepare_formulas
from loupe.benchmarks.omnidoc.cdm_samples import cdm_prediction, cdm_reference
from loupe.benchmarks.omnidoc.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidoc.scored_pages import ScoredPage
from loupe.metrics.cdm.pairs import Renderer

PROFILE: Final = "omnidocbench"
#: What a failure of the ground truth begins with.
OF_REFERENCE: Final = "ground truth "


def prepare_pages(matches: Sequence[PageMatch], renderer: Renderer) -> None:
    """Draw the formulas of many pages at once."""
    pairs = (cdm_pair(sample) for match in matches for sample in match.display_formula)
    prepare_formulas(pairs, profile=PROFILE, renderer=renderer)


def with_cdm(match: PageMatch, renderer: Renderer) -> PageMatch:
    """The match with the CDM of every display formula, None where it cannot be computed here."""
    pairs = [cdm_pair(sample) for sample in match.display_formula]
    outcomes = cdm_outcomes(pairs, profile=PROFILE, renderer=renderer)
    formulas = (
        replace(sample, cdm=outcome.f1, cdm_failure=outcome.failure or _of_reference(outcome))
        for sample, outcome in zip(match.display_formula, outcomes, strict=True)
    )
    return replace(match, display_formula=tuple(formulas))


def page_cdm(match: PageMatch) -> float | None:
    """The mean over the formulas of a page; None without any, or where CDM is not computed."""
    values = [sample.cdm for sample in match.display_formula if sample.cdm is not None]
    return sum(values) / len(values) if values else None


def formula_warnings(pages: Sequence[ScoredPage]) -> list[str]:
    """What a reader must know of formulas that are not drawn, by page; nothing where CDM was not asked for."""
    outcomes: Mapping[str, CdmOutcome] = {
        f"{page.stem}:{number}": CdmOutcome(f1=sample.cdm, failure=sample.cdm_failure)
        for page in pages
        for number, sample in enumerate(page.match.display_formula)
        if sample.cdm is not None or sample.cdm_failure
    }
    return cdm_warnings(outcomes, profile=PROFILE)


def _of_reference(outcome: CdmOutcome) -> str:
    return f"{OF_REFERENCE}{outcome.reference_failure}" if outcome.reference_failure else ""


def cdm_pair(sample: MatchedSample) -> tuple[str, str]:
    """Prediction and ground truth as the official caller cleans them: dollars and blanks are stripped twice."""
    return cdm_reference(cdm_prediction(sample.pred)), cdm_reference(cdm_reference(sample.gt))
