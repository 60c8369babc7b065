"""Formulas as OmniDocBench 1.5 compares them: LaTeX without what only affects looks, in small letters.

Protocol: docs/protocols/omnidocbench.md#normalisation.
"""

from __future__ import annotations

import re

from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, replaced

_CLOSING_BRACKET = re.compile(r"(?<!\\)\\\]")
#: Deleted up to the next closing brace.
ENVIRONMENTS_AND_SPACES = tuple(
    Delimiters(begin, "}") for begin in (r"\hspace{", r"\begin{", r"\end{", r"\arraycolsep")
)  # fmt: skip
_TAG = Delimiters(r"\tag{", "}")
_FONTS = r"\mathbf \mathrm \mathnormal \mathit \mathbb \mathcal \mathscr \mathfrak \mathsf \mathtt \textbf \text"
_MORE_FONTS = r"\boldmath \boldsymbol \operatorname \bm \symbfit \mathbfcal \symbf \scriptscriptstyle \notag"
_SPACES = r"\setlength \coloneqq \space \thickspace \thinspace \medspace \nobreakspace \negmedspace"
_MORE_SPACES = r"\quad \qquad \enspace \substackw"
_DELETED = (
    *(_FONTS.split() + _MORE_FONTS.split() + _SPACES.split() + _MORE_SPACES.split()),
    *(" ", "$$", r"\left", r"\right", r"\displaystyle", r"\text"),
)


def normalize_formula(latex: str) -> str:
    r"""A formula's normal form.

    >>> normalize_formula(r"\\[ \\mathbf{A}_1 = \\left( x \\right) \\tag{3} \\]")
    '{a}_1=(x)'
    """
    latex = inside_of_brackets(latex.strip().strip("$").strip("\n"))
    for delimiters in (_TAG, *ENVIRONMENTS_AND_SPACES):
        latex = replaced(latex, delimiters, "", one_line=True)
    return delete_literally(latex.strip(".")).lower()


def inside_of_brackets(latex: str) -> str:
    r"""The inside of the first `\[…\]` on one line, whose closing bracket no further backslash precedes; or all."""
    begin = latex.find(r"\[")
    while begin >= 0:
        line_end = latex.find("\n", begin)
        line_end = len(latex) if line_end < 0 else line_end
        if end := _CLOSING_BRACKET.search(latex, begin + 3, line_end):
            return latex[begin + 2 : end.start()].strip()
        begin = latex.find(r"\[", line_end)
    return latex


def delete_literally(latex: str) -> str:
    r"""Delete commands as substrings, in the official order: of `\leftarrow` there remains `arrow`.

    Protocol: docs/protocols/omnidocbench.md#normalisation.
    """
    for literal in _DELETED:
        latex = latex.replace(literal, "")
    return latex
