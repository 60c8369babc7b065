"""Formulas as the CDM evaluator gets them (section 10), and the file that the official metric `CDM_plain` writes."""

from __future__ import annotations


def cdm_prediction(prediction: str) -> str:
    """A predicted formula without its fence and its dollars."""
    return cdm_reference(_inside_last_fence_like_official(prediction))


def cdm_reference(reference: str) -> str:
    """A formula without the dollars around it, and without blanks around that.

    >>> cdm_reference("$$ x^2 $$")
    'x^2'
    """
    return reference.strip("$").strip()


def _inside_last_fence_like_official(prediction: str) -> str:
    """What follows the last opening LaTeX fence, up to the next fence mark (section 10)."""
    return prediction.split("```latex")[-1].split("```")[0]
