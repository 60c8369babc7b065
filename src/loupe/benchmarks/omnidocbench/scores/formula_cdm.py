"""CDM of the display formulas of a page.

Protocol: docs/protocols/omnidocbench.md#metrics; the metric: docs/metrics/cdm.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench.scores.cdm_files import CdmInputs
from loupe.benchmarks.omnidocbench.scores.reckoning import Reckoning
from loupe.benchmarks.omnidocbench.scores.scored_pages import ScoredPage
from loupe.benchmarks.shared.formula_images.cdm_scores import (
    CdmOutcome,
    cdm_outcomes,
    cdm_warnings,
    missing_tools,
    prepare_formulas,
)
from loupe.metrics.cdm.profiles import Renderer

#: What a failure of the ground truth begins with.
OF_REFERENCE: Final = "ground truth "


def prepare_pages(matches: Sequence[PageMatch], renderer: Renderer, reckoning: Reckoning) -> None:
    """Draw the formulas of many pages at once."""
    inputs = (inputs_of(sample, reckoning) for match in matches for sample in match.display_formula)
    pairs = (pair for each in inputs for pair in _pairs(each))
    prepare_formulas(pairs, profile=reckoning.cdm_profile, renderer=renderer)


def with_cdm(match: PageMatch, renderer: Renderer, reckoning: Reckoning) -> PageMatch:
    """The match with the CDM of every display formula, None where it cannot be computed here."""
    inputs = [inputs_of(sample, reckoning) for sample in match.display_formula]
    pairs = [pair for each in inputs for pair in _pairs(each)]
    outcomes = iter(cdm_outcomes(pairs, profile=reckoning.cdm_profile, renderer=renderer))
    formulas = []
    for sample, each in zip(match.display_formula, inputs, strict=True):
        outcome = _better([next(outcomes) for _ in _pairs(each)])
        failure = outcome.failure or _of_reference(outcome)
        formulas.append(replace(sample, cdm=outcome.f1, cdm_failure=failure))
    return replace(match, display_formula=tuple(formulas))


def _pairs(inputs: CdmInputs) -> Iterator[tuple[str, str]]:
    """Prediction and ground truth; where there is another spelling of the prediction, that as well."""
    yield inputs.prediction, inputs.reference
    if inputs.alternative:
        yield inputs.alternative, inputs.reference


def _better(outcomes: Sequence[CdmOutcome]) -> CdmOutcome:
    """The first, unless another spelling is worth more."""
    return max(outcomes, key=lambda outcome: -1.0 if outcome.f1 is None else outcome.f1)


def page_cdm(match: PageMatch) -> float | None:
    """The mean over the formulas of a page; None without any, or where CDM is not computed."""
    values = [sample.cdm for sample in match.display_formula if sample.cdm is not None]
    return sum(values) / len(values) if values else None


def can_compute(renderer: Renderer | None, reckoning: Reckoning) -> bool:
    """Whether CDM was asked for, and nothing that it needs is missing."""
    return renderer is not None and not missing_tools(reckoning.cdm_profile, renderer)


def formula_warnings(pages: Sequence[ScoredPage], profile: str) -> list[str]:
    """What a reader must know of formulas that are not drawn, by page; nothing where CDM was not asked for."""
    outcomes: Mapping[str, CdmOutcome] = {
        f"{page.stem}:{number}": CdmOutcome(f1=sample.cdm, failure=sample.cdm_failure)
        for page in pages
        for number, sample in enumerate(page.match.display_formula)
        if sample.cdm is not None or sample.cdm_failure
    }
    return cdm_warnings(outcomes, profile=profile)


def _of_reference(outcome: CdmOutcome) -> str:
    return f"{OF_REFERENCE}{outcome.reference_failure}" if outcome.reference_failure else ""


def inputs_of(sample: MatchedSample, reckoning: Reckoning) -> CdmInputs:
    """Prediction and ground truth as the official caller cleans them."""
    return reckoning.cdm_inputs(sample.gt, sample.pred)
