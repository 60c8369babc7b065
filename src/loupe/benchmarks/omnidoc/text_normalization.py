"""Text as OmniDocBench 1.5 compares it (section 5): inline formulas become characters, then only words remain."""

from __future__ import annotations

import re

from loupe.benchmarks.omnidoc.delimiters import Delimiters, Piece, pieces, with_replacements
from loupe.benchmarks.omnidoc.latex_text import convert, latex_to_text

__all__ = ["clean", "convert", "formulas_beyond_limits", "formulas_to_unicode", "latex_to_text", "normalize_text"]

_INLINE = (Delimiters("$", "$"), Delimiters(r"\(", r"\)"))
_ESCAPED = re.compile(r"\\[\\_&%^]")
_NO_WORD = re.compile(r"[^\w\u4e00-\u9fff]+")


def normalize_text(text: str) -> str:
    """The words of a text in one string, with no blanks, punctuation or marks; capitals stay."""
    return clean(formulas_to_unicode(text))


def formulas_to_unicode(text: str) -> str:
    r"""Inline formulas with a backslash, `^` or `_` in them as plain characters; others stay as they are."""
    formulas = _formulas_to_convert(text)
    return with_replacements(text, formulas, [_as_unicode(text, formula) for formula in formulas])


def formulas_beyond_limits(text: str) -> int:
    """How many inline formulas stay LaTeX only because they exceed what Loupe converts (`latex_text`)."""
    return sum(convert(formula.inside).beyond_limits for formula in _formulas_to_convert(text))


def _formulas_to_convert(text: str) -> list[Piece]:
    r"""The inline formulas, without escaped characters, that still hold a backslash, `^` or `_`."""
    if not _calls_for_conversion(text):
        return []
    found = (piece for piece in pieces(text, _INLINE, one_line=True) if _calls_for_conversion(piece.inside))
    formulas = (piece._replace(inside=without_escaped_characters(piece.inside)) for piece in found)
    return [formula for formula in formulas if _calls_for_conversion(formula.inside)]


def _calls_for_conversion(latex: str) -> bool:
    return "\\" in latex or "^" in latex or "_" in latex


def _as_unicode(text: str, formula: Piece) -> str:
    converted = latex_to_text(formula.inside)
    return text[formula.start : formula.end] if converted is None else converted.strip()


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
