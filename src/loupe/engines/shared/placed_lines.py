"""Lines of text with their places, as OCR engines tell them in their response: `loupe review` marks them on scans."""

from __future__ import annotations

from typing import TypeAlias

#: A line of text, and its box (left, top, right, bottom) as fractions of the page.
PlacedLine: TypeAlias = tuple[str, float, float, float, float]


def placed_line(text: str, box: tuple[float, float, float, float]) -> PlacedLine:
    """The line as it is stored: a ten-thousandth of the page is less than a pixel."""
    left, top, right, bottom = (round(end, 4) for end in box)
    return text, left, top, right, bottom
