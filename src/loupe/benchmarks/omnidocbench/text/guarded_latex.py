r"""LaTeX as plain characters behind guards: what OmniDocBench 1.6 does not give to pylatexenc.

Protocol: docs/protocols/omnidocbench_v16.md#latex-to-text.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from loupe.benchmarks.shared.latex_text.latex_characters_2_10 import convert
from loupe.metrics.latex_nodes import is_damaged

#: Upstream's limit, if the environment does not set another.
MAX_LENGTH: Final = 8_000

#: Why a formula is not converted: it looks like prose, has no LaTeX worth converting, or is broken; or pylatexenc
#: raises, or it is beyond the limits of Loupe alone.
Guard = Literal["", "noise", "weak", "bad", "error", "beyond limits"]

_CALLS_FOR_CONVERSION = re.compile(r"[\\{}$]")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile("[A-Za-z]{3,}")
_LATEX_SIGN = re.compile(r"\\[A-Za-z]+|[_^{}$]|\\[\[\]()]\]|[&%#]")
_NO_PROSE = re.compile(r"[{}$^_]|\\(?:frac|sqrt|left|right|begin|end|sum|int|alpha|beta)")
_SIGNIFICANT = re.compile(r"[{}$^_=&%#]")


class GuardedText(NamedTuple):
    """The text of a formula, None where it stays as it is; then what has kept it."""

    text: str | None
    guard: Guard = ""


def latex_to_text(latex: str, fallback: str | None = None) -> str:
    r"""The text of a formula; where a guard keeps it, the fallback, or else the formula without blanks around it.

    >>> latex_to_text(r"\alpha_{1} "), latex_to_text(r"\left( 1", "?")
    ('α_1', '?')
    """
    text = convert_guarded(latex).text
    if text is not None:
        return text
    return latex.strip() if fallback is None else fallback


def convert_guarded(latex: str) -> GuardedText:
    """As `latex_to_text`, and says which guard kept it."""
    latex = latex.strip()
    if not latex:
        return GuardedText(None)
    if not _CALLS_FOR_CONVERSION.search(latex):
        return GuardedText(latex)
    if _is_noise(latex):
        return GuardedText(None, "noise")
    if _is_weak(latex):
        return GuardedText(None, "weak")
    if is_damaged(latex, longest=MAX_LENGTH):
        return GuardedText(None, "bad")
    found = convert(latex)
    return GuardedText(found.text, "beyond limits" if found.beyond_limits else "error" if found.error else "")


def _is_noise(latex: str) -> bool:
    """Whether it is prose with hardly a sign of LaTeX."""
    if len(latex) < 32 or _NO_PROSE.search(latex) or latex.count(" ") < 5:
        return False
    return _fewer(_LATEX_SIGN, latex, 3) and not _fewer(_WORD, latex, 6)


def _fewer(pattern: re.Pattern[str], text: str, number: int) -> bool:
    """Whether a pattern is found fewer times than this."""
    return all(index + 1 < number for index, _ in enumerate(pattern.finditer(text)))


def _is_weak(latex: str) -> bool:
    """Whether there is no formula in it: a backslash alone, or words with one or two signs."""
    if latex in ("\\", "\\\\"):
        return True
    commands, signs = len(_COMMAND.findall(latex)), len(_SIGNIFICANT.findall(latex))
    if commands == 0 and latex.endswith("\\") and not latex.endswith("\\\\"):
        return True
    if commands == 0 and signs == 0 and "\\" in latex:
        return True
    if commands > 1 or signs > 2:
        return False
    words = len(_WORD.findall(latex))
    return (words >= 2 and commands == 0 and signs <= 1) or words >= 4
