"""The measures, and the headline: the mean of the tracks, each counted once. Why so: docs/synth.md#headline."""

from __future__ import annotations

from typing import Any

from loupe.benchmarks.shared.mean_of_parts import mean_of_parts
from loupe.metrics import rate_of_sums
from loupe.types import Measure, Values

#: Track → what its own measure is. Each lies between 0 and 1, and higher is better.
TRACK_TITLES = {
    "plain": "plain pages",
    "prior": "text without meaning",
    "detail": "exact values",
    "legibility": "small, faint print",
    "density": "dense pages",
    "degrade": "degraded pages",
    "tables": "tables",
    "formulas": "formulas",
    "order": "reading order",
    "languages": "languages",
    "traps": "traps passed",
}


def _rate(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, value=rate_of_sums)


MEASURES = (
    Measure(name="overall", title="mean of the tracks", of_parts=True),
    *(Measure(name=name, title=title) for name, title in TRACK_TITLES.items()),
    _rate("cer", "character errors"),
    _rate("wer", "word errors"),
    Measure(name="text_similarity", title="text similarity"),
    Measure(name="teds_structure", title="structure of tables (TEDS-S)"),
    Measure(name="corrected", title="wrong check digits put right", higher_is_better=False),
    Measure(name="prior_reliance", title="CER of random letters − CER of natural text", higher_is_better=False),
    _rate("cer_natural", "character errors, natural text"),
    _rate("cer_random", "character errors, random letters"),
)


def summarize(values: Values) -> Values:
    """`overall` over the tracks that are there, and what an engine owes to knowing the language; numbers or draws."""
    found: dict[str, Any] = {}
    if (overall := mean_of_parts(values, tuple(TRACK_TITLES))) is not None:
        found["overall"] = overall
    if values.get("cer_natural") is not None and values.get("cer_random") is not None:
        found["prior_reliance"] = values["cer_random"] - values["cer_natural"]
    return found
