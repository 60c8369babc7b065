"""Bring formulas into the form in which OmniDocBench compares them, for versions 1.5 and 1.6.

Version 1.5 removes what only affects looks, and lower-cases. Version 1.6 also removes delimiters, tags, equation
numbers, idle braces and blanks, and guards LaTeX that pylatexenc must not read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from loupe.benchmarks.omnidocbench.delimiters import (
    Delimiters,
    closing_braces,
    passes_over,
    pieces,
    replaced,
    with_replacements,
)
from loupe.benchmarks.shared.latex_characters_2_10 import convert
from loupe.metrics.latex_nodes import is_damaged

_CLOSING_BRACKET = re.compile(r"(?<!\\)\\\]")
#: Deleted up to the next closing brace.
ENVIRONMENTS_AND_SPACES = tuple(
    Delimiters(begin, "}") for begin in (r"\hspace{", r"\begin{", r"\end{", r"\arraycolsep")
)  # fmt: skip
_WHOLE_TAG = Delimiters(r"\tag{", "}")
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
    for delimiters in (_WHOLE_TAG, *ENVIRONMENTS_AND_SPACES):
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


#: In the order in which they are tried.
ENVELOPES: Final = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
#: The same in the order in which an item of an answer is looked at.
_WRITTEN: Final = (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"), ("$", "$"))
_PAIRS: Final = tuple(Delimiters(begin, end) for begin, end in ENVELOPES)
_TAG = re.compile(r"\\tag(?![A-Za-z])(?:\s*+\*?+\s*+(\{))?")
_UNNUMBERED: Final = ("\\notag", "\\nonumber")


def without_delimiters(formula: str) -> str:
    r"""The formula without the delimiters around it, however many pairs there are.

    >>> without_delimiters(r"$$ \[ x \] $$")
    'x'
    """
    start, end = _stripped(formula, 0, len(formula))
    while found := _pair(formula, start, end):
        begin, finish = found
        start, end = _stripped(formula, start + len(begin), end - len(finish))
    return formula[start:end]


def _pair(formula: str, start: int, end: int) -> tuple[str, str] | None:
    for begin, finish in ENVELOPES if start < end else ():
        is_long_enough = end - start >= len(begin) + len(finish)
        if is_long_enough and formula.startswith(begin, start) and formula.endswith(finish, start, end):
            return begin, finish
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def without_tags(formula: str) -> str:
    r"""The formula without `\tag{…}`, `\tag*{…}`, `\notag` and `\nonumber`; of one that is never closed the name goes.

    >>> without_tags(r"x \tag{a{2}} \notag")
    'x  '
    """
    if "\\tag" in formula:
        formula = _without_numbers(formula)
    for command in _UNNUMBERED:
        formula = formula.replace(command, "")
    return formula


def _without_numbers(formula: str) -> str:
    closing = closing_braces(formula)
    parts: list[str] = []
    cursor = 0
    for tag in _TAG.finditer(formula):
        opening = tag.start(1)
        if opening < 0 or tag.start() < cursor:  # it has no number, or stands in one that is cut out
            continue
        parts.append(formula[cursor : tag.start()])
        cursor = closing[opening] + 1 if opening in closing else tag.start() + len("\\tag")
    return "".join([*parts, formula[cursor:]])


def squeezed(text: str) -> str:
    """The text with one blank for all white space in a row, and none at its ends."""
    return " ".join(text.split())


def bare(text: str) -> str:
    r"""The text with blanks for the delimiters of its formulas; one kind after the other, over newlines.

    >>> bare("a $b$")
    'a  b '
    """
    for pair in _PAIRS:
        if pair.begin in text:
            found = list(pieces(text, [pair]))
            text = with_replacements(text, found, [f" {piece.inside} " for piece in found])
    return text


class Enveloped(NamedTuple):
    """A formula on one line: its inside, and the delimiters around it, "" where there are none."""

    inside: str
    begin: str
    end: str

    def around(self, inside: str) -> str:
        """Another inside in the same delimiters."""
        return f"{self.begin} {inside} {self.end}" if self.begin else inside


def enveloped(formula: str) -> Enveloped:
    r"""Take the delimiters off, once.

    >>> enveloped("\\[ x\n + 1 \\]").inside
    'x + 1'
    """
    formula = squeezed(formula)
    for begin, end in _WRITTEN:
        if len(formula) >= len(begin) + len(end) and formula.startswith(begin) and formula.endswith(end):
            return Enveloped(formula[len(begin) : -len(end)].strip(), begin, end)
    return Enveloped(formula, "", "")


_CIRCLED = re.compile(r"\\textcircled\s*\{([^{}]+)\}")
_PLAIN: Final = (
    {0x2460 + number: str(number + 1) for number in range(20)}
    | {0x24D0 + letter: chr(ord("a") + letter) for letter in range(26)}
    | {0x24B6 + letter: chr(ord("A") + letter) for letter in range(26)}
)


def without_circles(text: str) -> str:
    r"""The text with `\textcircled{3}` and ③ as 3, ⓐ as a.

    >>> without_circles(r"③ \textcircled{ b }")
    '3 b'
    """
    if "\\textcircled" in text:
        text = _CIRCLED.sub(lambda circled: circled[1].strip(), text)
    return text if text.isascii() else text.translate(_PLAIN)


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
    """True if it is prose with hardly a sign of LaTeX."""
    if len(latex) < 32 or _NO_PROSE.search(latex) or latex.count(" ") < 5:
        return False
    return _fewer(_LATEX_SIGN, latex, 3) and not _fewer(_WORD, latex, 6)


def _fewer(pattern: re.Pattern[str], text: str, number: int) -> bool:
    """True if a pattern is found fewer times than this."""
    return all(index + 1 < number for index, _ in enumerate(pattern.finditer(text)))


def _is_weak(latex: str) -> bool:
    """True if there is no formula in it: a backslash alone, or words with one or two signs."""
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
