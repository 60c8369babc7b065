"""Born-digital pages for tests of layout, set with Typst: what stands where is known."""

from __future__ import annotations

import io

from PIL import Image

WORDS = "The lower slipway will be closed from Monday until Friday while divers replace sleepers that shipworm ate. "
_PAGE = "#set page(width: 16cm, height: 20cm, margin: 1.6cm)\n#set text(size: 10pt)\n#set par(justify: true)\n"

TWO_COLUMNS = f"""{_PAGE}
#align(center, text(size: 22pt, weight: "bold")[Harbour Notes])
#v(0.6cm)
#columns(2, gutter: 1cm)[
  #text(size: 14pt, weight: "bold")[First heading]

  {WORDS * 3}

  #colbreak()
  #text(size: 14pt, weight: "bold")[Second heading]

  {WORDS * 3}
]
"""
TABLE = f"""{_PAGE}
{WORDS * 2}

#v(0.4cm)
#table(columns: (1fr, 1fr, 1fr), inset: 8pt, [Month], [High], [Low], [May], [5.12], [0.61], [June], [4.97], [0.71])
#v(0.4cm)

{WORDS}
"""
FIGURE = f"""{_PAGE}
{WORDS * 2}

#v(0.4cm)
#rect(width: 70%, height: 4cm, fill: gray)
#v(0.4cm)

{WORDS}
"""
FORMULA = f"""{_PAGE}
#set math.equation(numbering: "(1)")
{WORDS * 2}

$ E = sum_(k=1)^n (T_k - T_0)/(1 + alpha^2) + integral_0^t delta(s)/T_0 dif s $

{WORDS}
"""


def drawn(source: str, *, dpi: int = 150) -> Image.Image:
    """The first page of a Typst document as a picture."""
    import typst

    data = typst.compile(source.encode(), format="png", ppi=float(dpi))
    assert isinstance(data, bytes)
    return Image.open(io.BytesIO(data)).convert("RGB")
