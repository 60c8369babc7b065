"""LaTeX as plain characters: pylatexenc 3.0a30, which OmniDocBench pins (sections 5 and 9), with bounded work."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any


@cache
def _contexts() -> tuple[Any, Any]:
    from pylatexenc.latex2text import get_default_latex_context_db as texts
    from pylatexenc.latexwalker import get_default_latex_context_db as arguments

    return texts(), arguments()


@lru_cache(maxsize=8192)
def latex_to_text(latex: str) -> str | None:
    """The text of a formula; None where pylatexenc raises."""
    from pylatexenc.latex2text import LatexNodes2Text

    texts, arguments = _contexts()
    if latex.endswith("\\"):
        latex += " "
    try:
        return str(LatexNodes2Text(latex_context=texts).latex_to_text(latex, latex_context=arguments))
    except Exception:  # noqa: BLE001  upstream catches all: pylatexenc trips over much that is not LaTeX
        return None
