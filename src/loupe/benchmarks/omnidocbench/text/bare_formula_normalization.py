r"""Formulas as OmniDocBench 1.6 compares them: as 1.5, but without tags, idle braces and blanks.

Protocol: docs/protocols/omnidocbench_v16.md#formula.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from loupe.benchmarks.omnidocbench.text.balanced_braces import closing_braces, passes_over
from loupe.benchmarks.omnidocbench.text.circled_characters import without_circles
from loupe.benchmarks.omnidocbench.text.delimiters import replaced
from loupe.benchmarks.omnidocbench.text.formula_delimiters import without_delimiters, without_tags
from loupe.benchmarks.omnidocbench.text.formula_normalization import ENVIRONMENTS_AND_SPACES, delete_literally

_CACHED_LENGTH: Final = 2_000
_OPENING = re.compile(r"\\[\[(]")
_CLOSING: Final = {"\\[": re.compile(r"(?<!\\)\\\]"), "\\(": re.compile(r"(?<!\\)\\\)")}
_SMALL_SPACES = re.compile(r"\\[!,;:]")
_AMPERSANDS = re.compile(r"(?<!\\)&")
_COLUMNS = re.compile(r"\{[lcr| ]+\}")
_PLAIN_GROUP = re.compile(r"\{([A-Za-z0-9.+-]+)\}")
_OPENING_BRACES, _CLOSING_BRACES = re.compile(r"\{{2,}"), re.compile(r"\}{2,}")
_SHORT_GROUP = re.compile(r"\{([^{}]{1,160})\}")
_IS_FORMULA = re.compile(r"[=+\-^_\[\]()]|\\\\")
_BLANKS = re.compile(r"\s+")


def normalize_bare_formula(latex: str) -> str:
    r"""A formula's normal form.

    >>> normalize_bare_formula(r"\\( \\frac{{a}}{x_{1}} \\tag{3} \\)")
    '\\frac{a}x_1'
    """
    return _normalize_short(latex) if len(latex) <= _CACHED_LENGTH else _normalize(latex)


def _normalize(latex: str) -> str:
    latex = inside_of_first_delimiters(without_tags(without_delimiters(without_circles(latex))))
    latex = _AMPERSANDS.sub("", _SMALL_SPACES.sub("", _without_phantoms(latex)))
    latex = latex.replace("\\mid", "|").replace("\\vert", "|")
    for literal in ("\\{", "\\}", "~"):
        latex = latex.replace(literal, "")
    for delimiters in ENVIRONMENTS_AND_SPACES:
        latex = replaced(latex, delimiters, "", one_line=True)
    latex = delete_literally(_COLUMNS.sub("", latex).strip("."))
    return _BLANKS.sub("", _without_idle_braces(latex).lower())


_normalize_short = lru_cache(maxsize=4096)(_normalize)


def inside_of_first_delimiters(latex: str) -> str:
    r"""The inside of the first `\[…\]` or `\(…\)` on one line; or all. No backslash stands before its closing mark."""
    unclosed = {"\\[": -1, "\\(": -1}  # up to here there is no closing mark
    for opening in _OPENING.finditer(latex):
        sign, begin = opening[0], opening.end()
        if begin <= unclosed[sign]:
            continue
        line_end = latex.find("\n", begin)
        line_end = len(latex) if line_end < 0 else line_end
        if end := _CLOSING[sign].search(latex, begin + 1, line_end):
            return latex[begin : end.start()].strip()
        unclosed[sign] = line_end
    return latex


def _without_phantoms(latex: str) -> str:
    r"""Without `\phantom{…}`; where one is never closed only its name goes, and later ones stay."""
    for _ in passes_over(latex):
        if (begin := latex.find("\\phantom{")) < 0:
            break
        closing = closing_braces(latex)
        parts, cursor = list[str](), 0
        while begin >= 0:
            parts.append(latex[cursor:begin])
            opening = begin + len("\\phantom")
            if opening not in closing:
                return "".join([*parts, latex[opening:]])
            cursor = closing[opening] + 1
            begin = latex.find("\\phantom{", cursor)
        latex = "".join([*parts, latex[cursor:]])
    return latex


def _without_idle_braces(latex: str) -> str:
    """Without braces around words and short formulas, or around nothing; several in a row are one."""
    for _ in passes_over(latex) if "{" in latex or "}" in latex else ():
        before = latex
        latex = _PLAIN_GROUP.sub(r"\1", latex).replace("{}", "")
        latex = _CLOSING_BRACES.sub("}", _OPENING_BRACES.sub("{", latex))
        latex = _SHORT_GROUP.sub(_without_its_braces, latex)
        if latex == before:
            break
    return latex


def _without_its_braces(group: re.Match[str]) -> str:
    return group[1] if _IS_FORMULA.search(group[1]) else group[0]
