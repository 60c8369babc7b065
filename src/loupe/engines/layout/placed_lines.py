"""Lines of text with their places, as OCR engines tell them in their response: marks on scans, boxes in the report."""

from __future__ import annotations

from typing import NamedTuple


class PlacedLine(NamedTuple):
    """A line of text, its box as fractions of the page, and how sure the engine was (0 to 1; None: it does not say)."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float | None = None


def placed_line(text: str, box: tuple[float, float, float, float], confidence: float | None = None) -> PlacedLine:
    """The line as it is stored: a ten-thousandth of the page is less than a pixel."""
    left, top, right, bottom = (round(end, 4) for end in box)
    return PlacedLine(text, left, top, right, bottom, None if confidence is None else round(confidence, 3))
