"""Text as OmniDocBench 1.5 compares it: inline formulas become characters, then only words remain.

Protocol: docs/protocols/omnidocbench.md#normalisation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, Piece, pieces, with_replacements
from loupe.benchmarks.shared.latex_text.latex_characters import (
    Conversion,
    convert,
    with_space_behind_a_last_backslash,
)

#: A formula as characters, as one version of pylatexenc has them.
Convert: TypeAlias = Callable[[str], Conversion]

_INLINE = (Delimiters("$", "$"), Delimiters(r"\(", r"\)"))
_ESCAPED = re.compile(r"\\[\\_&%^]")
_NO_WORD = re.compile(r"[^\w\u4e00-\u9fff]+")


def normalize_text(text: str, convert: Convert = convert) -> str:
    """The words of a text in one string, with no blanks, punctuation or marks; capitals stay."""
    return clean(formulas_to_unicode(text, convert))


def formulas_to_unicode(text: str, convert: Convert = convert) -> str:
    r"""Inline formulas with a backslash, `^` or `_` in them as plain characters; others stay as they are."""
    formulas = formulas_to_convert(text)
    return with_replacements(text, formulas, [_as_unicode(text, formula, convert) for formula in formulas])


def formulas_beyond_limits(text: str) -> int:
    """How many inline formulas stay LaTeX only because they exceed what Loupe converts (`latex_text`)."""
    return sum(convert(formula.inside).beyond_limits for formula in formulas_to_convert(text))


def inline_formulas(text: str) -> list[Piece]:
    r"""What stands between dollars or in `\(…\)` on one line."""
    return list(pieces(text, _INLINE, one_line=True))


def formulas_to_convert(text: str) -> list[Piece]:
    r"""The inline formulas, without escaped characters, that still hold a backslash, `^` or `_`."""
    if not _calls_for_conversion(text):
        return []
    found = (piece for piece in inline_formulas(text) if _calls_for_conversion(piece.inside))
    formulas = (piece._replace(inside=without_escaped_characters(piece.inside)) for piece in found)
    return [formula for formula in formulas if _calls_for_conversion(formula.inside)]


def _calls_for_conversion(latex: str) -> bool:
    return "\\" in latex or "^" in latex or "_" in latex


def _as_unicode(text: str, formula: Piece, convert: Convert) -> str:
    converted = convert(with_space_behind_a_last_backslash(formula.inside)).text
    return text[formula.start : formula.end] if converted is None else converted.strip()


def without_escaped_characters(latex: str) -> str:
    r"""Delete `\\`, `\_`, `\&`, `\%` and `\^`, both characters: `50\%` becomes 50.

    Protocol: docs/protocols/omnidocbench.md#normalisation.
    """
    return _ESCAPED.sub("", latex)


def clean(text: str) -> str:
    r"""Words only: letters, digits, `_` and CJK characters. As few as they are, `\t`, `\n`, `/t`, `/n` go too."""
    return _NO_WORD.sub("", without_written_blanks(text))


def without_written_blanks(text: str) -> str:
    r"""Delete `t` and `n` behind a slash or backslash: `\text` becomes `ext`, "and/then" "andhen" (#normalisation)."""
    for blank in (r"\t", r"\n", "\t", "\n", "/t", "/n"):
        text = text.replace(blank, "")
    return text
