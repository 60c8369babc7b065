"""Text as OmniDocBench 1.5 compares it (section 5): inline formulas become characters, then only words remain."""

from __future__ import annotations

import re
from functools import lru_cache

from loupe.benchmarks.omnidoc.delimiters import Delimiters, Piece, between, pieces
from loupe.benchmarks.omnidoc.latex_text import latex_to_text

__all__ = ["clean", "formulas_to_unicode", "latex_to_text", "normalize_text"]

_INLINE = (Delimiters("$", "$"), Delimiters(r"\(", r"\)"))
_ESCAPED = re.compile(r"\\[\\_&%^]")
_NO_WORD = re.compile(r"[^\w\u4e00-\u9fff]+")


@lru_cache(maxsize=4096)
def normalize_text(text: str) -> str:
    """The words of a text in one string, with no blanks, punctuation or marks; capitals stay."""
    return clean(formulas_to_unicode(text))


def formulas_to_unicode(text: str) -> str:
    r"""Inline formulas with a backslash, `^` or `_` in them as plain characters; others stay as they are."""
    formulas = list(pieces(text, _INLINE, one_line=True))
    return between(text, formulas, [_as_unicode(text, formula) for formula in formulas])


def _as_unicode(text: str, formula: Piece) -> str:
    latex = without_escaped_characters(formula.inside)
    if any(character in latex for character in r"\^_"):
        converted = latex_to_text(latex)
        if converted is not None:
            return converted.strip()
    return text[formula.start : formula.end]


def without_escaped_characters(latex: str) -> str:
    r"""Delete `\\`, `\_`, `\&`, `\%` and `\^`, both characters: `50\%` becomes 50 (section 5)."""
    return _ESCAPED.sub("", latex)


def clean(text: str) -> str:
    r"""Words only: letters, digits, `_` and CJK characters. As few as they are, `\t`, `\n`, `/t`, `/n` go too."""
    return _NO_WORD.sub("", without_written_blanks(text))


def without_written_blanks(text: str) -> str:
    r"""Delete the letters `t` and `n` behind a slash or backslash: `\text` becomes `ext`, "and/then" "andhen" (5)."""
    for blank in (r"\t", r"\n", "\t", "\n", "/t", "/n"):
        text = text.replace(blank, "")
    return text
