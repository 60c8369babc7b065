"""The part of an answer that is most like a text that it should hold, for the report."""

from __future__ import annotations

from rapidfuzz import fuzz

from loupe.explanation import Comparison

#: Characters shown on either side of the text that was found.
AROUND = 60


def nearest_text(label: str, wanted: str, where: str, enough: float | None) -> Comparison:
    """The part of `where` that is most similar, with what stands around it."""
    found = fuzz.partial_ratio_alignment(wanted, where)
    if found is None or not where:
        return Comparison(label=label, wanted=wanted, found="", similarity=0.0, enough=enough)
    start, end = found.dest_start, found.dest_end
    return Comparison(
        label=label,
        wanted=wanted,
        found=where[start:end],
        before=where[max(0, start - AROUND) : start],
        after=where[end : end + AROUND],
        similarity=found.score / 100,
        enough=enough,
    )
