"""What KaTeX makes of an equation: its MathML, the texts of its innermost spans, and where these stand."""

from __future__ import annotations

import msgspec

#: Longest equation that is drawn, in characters; a longer one counts as one that KaTeX refuses. Upstream has no limit,
#: but KaTeX needs quadratic time: 3 s for the longest that is drawn here, hours for a megabyte.
LONGEST_EQUATION = 20_000


class Box(msgspec.Struct, frozen=True, array_like=True):
    """The border box of a span, in CSS pixels of a page of 800 x 400."""

    x: float
    y: float
    width: float
    height: float


class PicturedGlyph(msgspec.Struct, frozen=True, array_like=True):
    """Where the text of a span begins, on which baseline, and in which type."""

    x: float
    baseline: float
    width: float
    size: float
    italic: bool
    bold: bool


class PicturedShape(msgspec.Struct, frozen=True, array_like=True):
    """An SVG path, the matrix that places it and the box that it is cut off at."""

    path: str
    matrix: tuple[float, float, float, float, float, float]
    clip: tuple[float, float, float, float]
    stroke: bool


class Picture(msgspec.Struct, frozen=True):
    """An equation for people to see, in pixels from its upper left corner. `glyphs` belong to the texts."""

    width: float
    height: float
    glyphs: list[PicturedGlyph]
    rules: list[tuple[float, float, float, float]]
    shapes: list[PicturedShape]


class Drawing(msgspec.Struct, frozen=True):
    """An equation as drawn. With `error` (KaTeX refuses it) or `lost` (it cost the browser) there is no rest.

    `texts` are those of the spans with something to see, trimmed, in document order; `boxes` belong to them, and are
    None where nobody has asked for them. `picture` is there where one was asked for and is not too large.
    """

    mathml: str = ""
    texts: list[str] = []
    boxes: list[Box] | None = None
    picture: Picture | None = None
    error: str = ""
    lost: str = ""


def refused_unseen(equation: str) -> str:
    """Why an equation is not even shown to KaTeX; empty where it is."""
    if len(equation) > LONGEST_EQUATION:
        return f"{len(equation)} characters, more than {LONGEST_EQUATION}"
    try:
        equation.encode("utf-8")
    except UnicodeEncodeError:
        return "no valid Unicode (a lone surrogate)"
    return ""
