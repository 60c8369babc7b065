r"""Text as OmniDocBench 1.6 compares it: as 1.5 does, but circles go first, and guards keep what is hardly a formula.

Protocol: docs/protocols/omnidocbench_v16.md#text.
"""

from __future__ import annotations

import re
from typing import Final

from loupe.benchmarks.omnidocbench.text.bare_formula_normalization import normalize_bare_formula
from loupe.benchmarks.omnidocbench.text.circled_characters import without_circles
from loupe.benchmarks.omnidocbench.text.delimiters import with_replacements
from loupe.benchmarks.omnidocbench.text.guarded_latex import convert_guarded, latex_to_text
from loupe.benchmarks.omnidocbench.text.text_normalization import clean, formulas_to_convert, inline_formulas
from loupe.benchmarks.shared.latex_text.latex_characters import with_space_behind_a_last_backslash

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
        [_as_unicode(formula.inside, text[formula.start : formula.end]) for formula in formulas],
    )


def guards(text: str) -> list[str]:
    """What keeps the inline formulas of a text from being converted: one entry for each that stays LaTeX."""
    formulas = (formula.inside for formula in formulas_to_convert(without_circles(text)))
    found = (convert_guarded(latex).guard for latex in formulas if not _is_too_large(latex.strip()))
    return [guard for guard in found if guard]


def _as_unicode(latex: str, with_delimiters: str) -> str:
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
