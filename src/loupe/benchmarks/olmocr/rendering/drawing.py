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


class Drawing(msgspec.Struct, frozen=True):
    """An equation as drawn. With `error` (KaTeX refuses it) or `lost` (it cost the browser) there is no rest.

    `texts` are those of the spans with something to see, trimmed, in document order; `boxes` belong to them, and are
    None where nobody has asked for them.
    """

    mathml: str = ""
    texts: list[str] = []
    boxes: list[Box] | None = None
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
