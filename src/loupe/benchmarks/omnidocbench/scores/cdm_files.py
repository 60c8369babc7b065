"""Formulas as the CDM evaluator gets them, and the file that the official metric `CDM_plain` writes.

Protocol: docs/protocols/omnidocbench.md#metrics.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmInputs:
    """What CDM gets of one formula. `alternative` is the prediction spelled otherwise ("": none); the better counts."""

    prediction: str
    reference: str
    alternative: str = ""


def stripped_inputs(gt: str, pred: str) -> CdmInputs:
    """A formula as the official caller of 1.5 cleans it: dollars and blanks are stripped twice."""
    return CdmInputs(
        prediction=cdm_reference(cdm_prediction(pred)),
        reference=cdm_reference(cdm_reference(gt)),
    )


def no_fields(gt: str, pred: str) -> dict[str, str]:
    """What an official sample of 1.5 has for CDM beside the formulas: nothing."""
    del gt, pred
    return {}


def cdm_prediction(prediction: str) -> str:
    """A predicted formula without its fence and its dollars."""
    return cdm_reference(inside_last_fence_like_official(prediction))


def cdm_reference(reference: str) -> str:
    """A formula without the dollars around it, and without blanks around that.

    >>> cdm_reference("$$ x^2 $$")
    'x^2'
    """
    return reference.strip("$").strip()


def inside_last_fence_like_official(prediction: str) -> str:
    """What follows the last opening LaTeX fence, up to the next fence mark (docs/protocols/omnidocbench.md#metrics)."""
    return prediction.split("```latex")[-1].split("```")[0]
