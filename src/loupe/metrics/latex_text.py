"""LaTeX formulas as text: blanks without meaning, and the wrapping that models put around a formula.

Source: `normalize_text` of opendatalab/UniMERNet @ 5a2c80d9, `test.py`; docs/benchmarks/unimer_test.md.
"""

from __future__ import annotations

import re

from loupe.metrics.arguments import check_texts

_NAMED = re.compile(r"\\(?:operatorname|mathrm|text|mathbf)\s?\*? \{")
# White space, digits and signs are "no letter"; letters beyond ASCII are neither.
_NO_LETTER = r"[\W_^\d]"
_BETWEEN_NO_LETTERS = re.compile(rf"(?!\\ )({_NO_LETTER})\s({_NO_LETTER})")
_RUN_BEFORE_LETTER = re.compile(r"(?<!\s)\s++(?=[a-zA-Z])")
_AFTER_LETTER = re.compile(rf"([a-zA-Z])\s({_NO_LETTER})")
_IS_NO_LETTER = re.compile(_NO_LETTER)

_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))


def normalize_latex_like_unimernet(text: str) -> str:
    r"""Remove the blanks that UniMERNet's test script removes: all but those between two ASCII letters.

    Blanks inside the braces of \operatorname, \mathrm, \text and \mathbf go, too, but only if a blank precedes the
    brace, and only up to the first closing one: kept for parity, as is the rest. A control space, "\ ", stays.
    Takes time in proportion to the length, where the original is quadratic on runs of blanks and unclosed braces.

    >>> normalize_latex_like_unimernet(r"\frac { a + b } { 2 } \alpha x \text { i f }")
    '\\frac{a+b}{2}\\alpha x\\text{if}'
    """
    check_texts(text=text)
    text = _close_up_named(text)
    while True:
        shorter = _BETWEEN_NO_LETTERS.sub(r"\1\2", text)
        shorter = _close_before_letters(shorter)
        shorter = _AFTER_LETTER.sub(r"\1\2", shorter)
        if shorter == text:
            return text
        text = shorter


def strip_formula_wrapping(text: str) -> str:
    r"""Return the formula alone, without a code fence and without $, $$, \[ \] or \( \) around all of it.

    For `cdm` and edit distances of formulas: apply it to both sides.

    >>> strip_formula_wrapping("```latex\n$$ x^2 $$\n```")
    'x^2'
    """
    check_texts(text=text)
    text = text.strip()
    fenced = _FENCE.fullmatch(text)
    if fenced and "```" not in fenced[1]:
        text = fenced[1].strip()
    for opening, closing in _DELIMITERS:
        inner = text[len(opening) : -len(closing)]
        if len(text) >= len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            return inner.strip() if opening not in inner and closing not in inner else text
    return text


def _close_up_named(text: str) -> str:
    """Remove blanks from named commands up to the brace that closes them; a line end before it: no such command."""
    parts = []
    done = closing = line_end = 0
    for command in _NAMED.finditer(text):
        start, brace = command.span()
        if start < done:
            continue
        if closing < brace:
            closing = _find(text, "}", brace)
        if line_end < brace:
            line_end = _find(text, "\n", brace)
        if closing < line_end:
            parts += [text[done:start], text[start : closing + 1].replace(" ", "")]
            done = closing + 1
    return "".join([*parts, text[done:]])


def _find(text: str, wanted: str, start: int) -> int:
    found = text.find(wanted, start)
    return found if found >= 0 else len(text)


def _close_before_letters(text: str) -> str:
    r"""One round of: no letter, white space, letter → without the white space.

    White space is itself no letter, so a run of it that follows a letter, or that starts a control space, keeps its
    first character if it has more than one.
    """

    def close(run: re.Match[str]) -> str:
        before = text[run.start() - 1] if run.start() else ""
        control_space = before == "\\" and run[0][0] == " "
        if before and not control_space and _IS_NO_LETTER.match(before):
            return ""
        return run[0][0]

    return _RUN_BEFORE_LETTER.sub(close, text)
