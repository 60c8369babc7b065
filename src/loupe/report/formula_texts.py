"""LaTeX of formula pairs as the report compares it: in the form that CDM gives it, whatever way it was written."""

from __future__ import annotations

from loupe.explanation import FormulaPair

#: A longer pair is compared as it was written.
LONGEST = 20_000


def compared_texts(pair: FormulaPair) -> list[str] | None:
    """Prediction and reference normalised as CDM does it, and without delimiters around them, which draw nothing.

    None where both stand there like that already, or cannot be brought into that form.
    """
    from loupe.metrics import strip_formula_wrapping
    from loupe.metrics.cdm import PROFILES, NotColouredError, colour

    sides = (pair.prediction, pair.reference)
    if pair.prediction == pair.reference or len(pair.prediction) + len(pair.reference) > LONGEST:
        return None
    try:
        found = [colour(strip_formula_wrapping(side), PROFILES[pair.profile]).normalized.strip() for side in sides]
    except NotColouredError:
        return None
    return None if found == list(sides) else found
