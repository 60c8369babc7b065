"""What CDM made of one formula, for the report to draw."""

from __future__ import annotations

from loupe.benchmarks.shared.formula_images.cdm_options import renderer_of
from loupe.benchmarks.shared.formula_images.cdm_scores import CdmOutcome
from loupe.explanation import Explanation, FormulaPair, Unit
from loupe.typed import convert
from loupe.types import Sample, SampleScores


def explain_formula(sample: Sample, scores: SampleScores, *, reference: str, profile: str) -> Explanation | None:
    """The formula of a sample beside the answer, as CDM got both; None where its scores keep neither."""
    renderer = renderer_of(sample, "layout")
    if renderer is None or "cdm" not in scores.details or "compared" not in scores.details:
        return None
    outcome = convert(scores.details["cdm"], CdmOutcome)
    prediction = str(scores.details["compared"])
    pair = FormulaPair(
        prediction=prediction,
        reference=reference,
        profile=profile,
        renderer=renderer,
        f1=outcome.f1,
        prediction_failure=outcome.failure,
        reference_failure=outcome.reference_failure,
    )
    unit = Unit(
        element="formula",
        regions=(),
        reference=sample.truth,
        value=outcome.f1 if outcome.counted else None,
        verdict=cdm_verdict(outcome),
        formulas=pair,
    )
    return Explanation(units=(unit,))


def cdm_verdict(outcome: CdmOutcome) -> str:
    """The figures in a line."""
    if outcome.f1 is None:
        return "CDM not computed"
    if not outcome.counted:
        return "in no CDM, because the ground truth is not drawn"
    figures = (("CDM F1", outcome.f1), ("precision", outcome.precision), ("recall", outcome.recall))
    return ", ".join(f"{name} {100 * value:.1f} %" for name, value in figures)
