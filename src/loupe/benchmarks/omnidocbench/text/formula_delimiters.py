r"""What stands around a formula and beside it, for OmniDocBench 1.6: delimiters and equation numbers.

Protocol: docs/protocols/omnidocbench_v16.md#formula.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.text.balanced_braces import closing_braces
from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, pieces, with_replacements

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
