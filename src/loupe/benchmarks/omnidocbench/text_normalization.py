"""Bring text and tables into the form in which OmniDocBench compares them, for versions 1.5 and 1.6.

Inline formulas become characters, then only words remain.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from loupe.benchmarks.omnidocbench.delimiters import Delimiters, Piece, pieces, with_replacements
from loupe.benchmarks.omnidocbench.formula_normalization import (
    convert_guarded,
    latex_to_text,
    normalize_bare_formula,
    without_circles,
)
from loupe.benchmarks.shared.latex_characters import Conversion, convert, with_space_behind_a_last_backslash
from loupe.metrics.table_normalization import normalize_like_omnidocbench, normalize_like_omnidocbench_1_6
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

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
    """Count the inline formulas that stay LaTeX only because they exceed what Loupe converts (`latex_text`)."""
    return sum(convert(formula.inside).beyond_limits for formula in formulas_to_convert(text))


def inline_formulas(text: str) -> list[Piece]:
    r"""Return what is between dollars or in `\(…\)` on one line."""
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


_LONGEST: Final = 128
_LARGE_STRUCTURE = re.compile(r"\\(?:begin\{|end\{|array|matrix|tabular|cases|align|\\)|&")


def normalize_guarded_text(text: str) -> str:
    """The words of a text in one string, with no blanks, punctuation or marks; capitals stay."""
    return clean(without_circles(guarded_formulas_to_unicode(text)))


def guarded_formulas_to_unicode(text: str) -> str:
    r"""Inline formulas with a backslash, `^` or `_` in them as plain characters.

    Long ones and those of several lines keep their dollars; one that a guard keeps loses them.
    """
    text = without_circles(text)
    formulas = formulas_to_convert(text)
    return with_replacements(
        text,
        formulas,
        [_guarded_as_unicode(formula.inside, text[formula.start : formula.end]) for formula in formulas],
    )


def guards(text: str) -> list[str]:
    """Name the guards that keep the inline formulas of a text from being converted: one entry for each that stays
    LaTeX.
    """
    formulas = (formula.inside for formula in formulas_to_convert(without_circles(text)))
    found = (convert_guarded(latex).guard for latex in formulas if not _is_too_large(latex.strip()))
    return [guard for guard in found if guard]


def _guarded_as_unicode(latex: str, with_delimiters: str) -> str:
    if _is_too_large(latex.strip()):
        return with_delimiters
    return latex_to_text(with_space_behind_a_last_backslash(latex), latex).strip()


def _is_too_large(latex: str) -> bool:
    if len(latex) > _LONGEST or _LARGE_STRUCTURE.search(latex):
        return True
    return latex.count("{") != latex.count("}")


def with_formulas_normalized(text: str) -> str:
    """The text with its inline formulas in the normal form of formulas."""
    formulas = inline_formulas(text)
    return with_replacements(text, formulas, [normalize_bare_formula(formula.inside).strip() for formula in formulas])


def with_marks(raw: str, compared: str, convert: Convert) -> str:
    """The compared form of a text with its marks, composed (NFC), so that two ways to write one letter are equal.

    `raw` is the text before, `compared` its official form: it is given back where the marks have no certain place in
    it, because more happened to it than that characters were dropped. `convert` makes inline formulas characters.
    """
    if raw.isascii():
        return compared
    words = [
        each for each in without_written_blanks(formulas_to_unicode(raw, convert)) if _is_word(each) or is_mark(each)
    ]
    if "".join(each for each in words if not is_mark(each)) != compared:
        return compared
    return unicodedata.normalize("NFC", "".join(words))


@cache
def _marks() -> frozenset[str]:
    return frozenset(filter(is_mark, map(chr, range(sys.maxunicode + 1))))


def has_marks(text: str) -> bool:
    """True if there is any mark in it."""
    return not (text.isascii() or _marks().isdisjoint(text))


def is_mark(character: str) -> bool:
    """True if it belongs to the letter before it (general category M), and is no letter itself.

    >>> is_mark("ि"), is_mark("a")
    (True, False)
    """
    return unicodedata.category(character)[0] == "M" and not character.isalnum()


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def normalize_table(table: str) -> str:
    """One HTML page with one table; "" where there is no `<table`, and the metrics take the raw string.

    "" as well where html.parser refuses the markup (`refusal`). Raises TableTooLargeError for markup that cannot be
    read in bounded time: an error of its page.
    """
    return _normalized(table, normalize_like_omnidocbench)


def normalize_table_1_6(table: str) -> str:
    """The same for 1.6, which writes symbols for commands in cells."""
    return _normalized(table, normalize_like_omnidocbench_1_6)


def _normalized(table: str, normalize: Callable[[str], str]) -> str:
    try:
        return normalize(table)
    except TableTooLargeError:
        raise
    except TedsError:
        return ""


def refusal(table: str, norm: str) -> str:
    """The exception with which this table ends upstream's whole run; "" where it can be normalised."""
    if norm or "<table" not in table:
        return ""
    try:
        normalize_like_omnidocbench(table)
    except TedsError as error:
        return error.upstream
    return ""
