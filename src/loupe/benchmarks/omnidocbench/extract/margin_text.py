r"""What OmniDocBench 1.6 takes off a formula: the number before it, captions behind it; and several sums in one line.

Protocol: docs/protocols/omnidocbench_v16.md#margin-text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.formula_delimiters import enveloped, squeezed
from loupe.benchmarks.omnidocbench.text.guarded_latex import latex_to_text
from loupe.benchmarks.omnidocbench.text.spacing_commands import end_without_spacing

_SPACE: Final = r"\\(?:qquad|quad|enspace|[,;:])"
_NUMBER: Final = r"\s*[0-9IVXivx]+\s*"
_LEADING_NUMBER = re.compile(rf"\s*(\\left\({_NUMBER}\\right\)|\({_NUMBER}\))\s*(?:{_SPACE}\s*)*")
_SPACES: Final = (r"\qquad", r"\quad", r"\enspace", r"\,", r"\;", r"\:")
#: Before the brace of a caption; formulas are squeezed, so this is all that may stand there.
_BEFORE_TEXT = re.compile(rf"({_SPACE})\s*(\\text\s*)\Z")
_LONGEST_BEFORE_TEXT: Final = 24
_BEFORE_PARENTHESIS = re.compile(rf"{_SPACE}\s*\(")
_LETTER = re.compile("[A-Za-z]")
_TWO_LETTERS = re.compile("[A-Za-z]{2,}")
_FORMULA_SIGN = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√_^{}]")
_ONLY_NUMBER = re.compile("[0-9IVXivx]+")
_DIGIT = re.compile(r"\d")

_SEGMENTS = re.compile(r"\s*\\q?quad\s*")
_LONGEST_SEGMENT: Final = 160
_NO_ARITHMETIC = re.compile(
    r"\\(?:begin\{|end\{|mathbf|left|right|cdot|lambda|Gamma|varGamma|text|matrix|pmatrix|bmatrix)"
)
_EQUATES = re.compile(r"[=≈≠≤≥]|\\(?:approx|neq|leq|geq)")
#: A fraction, a quotient or two digits: what arithmetic has.
NUMBERS = re.compile(r"\\frac|\d+\s*/\s*\d+|\d.*?\d")


class _Cut(NamedTuple):
    """Where a caption is cut off, and the caption."""

    start: int
    caption: str


def with_margins_apart(formula: Item) -> list[Item]:
    """A formula without its number and captions, in parts if it is several sums, and then these texts as items."""
    content, texts = _split_off(formula)
    return [*_sums(replace(formula, content=content)), *texts]


def _split_off(formula: Item) -> tuple[str, list[Item]]:
    whole = enveloped(formula.content)
    number, cut = _LEADING_NUMBER.match(whole.inside), _trailing_caption(whole.inside)
    if not number and not cut:
        return formula.content, []
    texts, inside = list[Item](), whole.inside
    if number:
        end = min(formula.end, formula.start + max(len(number[1]), 1))
        texts.append(_caption_item(number[1], formula.start, end))
        inside = inside[number.end() :].strip()
    while cut := _trailing_caption(inside):
        start = max(formula.start, formula.end - max(len(cut.caption), 1))
        texts.append(_caption_item(cut.caption, start, formula.end))
        inside = inside[: cut.start].rstrip()
    inside = inside[: end_without_spacing(inside, _SPACES)].strip()
    if not inside:
        return squeezed(formula.content), []
    return whole.around(inside), [text for text in texts if text.content]


def _caption_item(latex: str, start: int, end: int) -> Item:
    content = plain_caption(latex)
    return Item(category="text_all", content=content, start=start, end=end, fine_category="equation_caption")


def plain_caption(latex: str) -> str:
    """A caption as text on one line."""
    return squeezed(latex_to_text(latex, latex).replace("\xa0", " "))


def _trailing_caption(formula: str) -> _Cut | None:
    """The caption that a squeezed formula ends with, behind a spacing command."""
    cut = _text_at_end(formula)
    if cut and is_caption(cut.caption):
        return cut
    cut = _parenthesis_at_end(formula)
    return cut if cut and is_caption(cut.caption) else None


def _text_at_end(formula: str) -> _Cut | None:
    r"""`\text{…}` at the end, maybe with a dot behind it."""
    closing = len(formula) - (2 if formula.endswith(".") else 1)
    if formula[closing : closing + 1] != "}":
        return None
    opening = max(formula.rfind("{", 0, closing), formula.rfind("}", 0, closing))
    if opening < 0 or formula[opening] != "{":
        return None
    window = max(0, opening - _LONGEST_BEFORE_TEXT)
    before = _BEFORE_TEXT.search(formula, window, opening)
    return _Cut(before.start(), formula[before.start(2) :]) if before else None


def _parenthesis_at_end(formula: str) -> _Cut | None:
    """Words in parentheses at the end, maybe with a dot behind them."""
    closing = len(formula) - (2 if formula.endswith(".") else 1)
    if formula[closing : closing + 1] != ")":
        return None
    before = _BEFORE_PARENTHESIS.search(formula, formula.rfind(")", 0, closing) + 1, closing)
    if not before or not _LETTER.search(formula, before.end(), closing):
        return None
    return _Cut(before.start(), formula[before.end() - 1 :])


def is_caption(latex: str) -> bool:
    """Whether it is words rather than a formula or a number."""
    latex = latex.strip()
    text = plain_caption(latex)
    inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if not text or _ONLY_NUMBER.fullmatch(inside.strip().replace(" ", "")):
        return False
    letters, signs = len(_LETTER.findall(text)), len(_FORMULA_SIGN.findall(latex))
    if letters >= 10 and signs <= 6 and len(_TWO_LETTERS.findall(text)) >= 2:
        return True
    return letters >= 14 and signs <= 3 and not _DIGIT.search(text)


def _sums(formula: Item) -> Sequence[Item]:
    r"""The formula, or its sums between `\quad`: each has its share of the place."""
    if "\\quad" not in formula.content and "\\qquad" not in formula.content:
        return [formula]
    whole = enveloped(formula.content)
    segments = [segment for each in _SEGMENTS.split(whole.inside) if (segment := each.strip())]
    if len(segments) < 2 or not all(map(is_arithmetic, segments)):
        return [formula]
    share = max(max(formula.end - formula.start, len(segments)) // len(segments), 1)
    items = []
    for index, segment in enumerate(segments):
        start = formula.start + index * share
        end = min(formula.end, start + share) if index < len(segments) - 1 else formula.end
        items.append(replace(formula, content=whole.around(segment), start=start, end=end))
    return items


def is_arithmetic(segment: str) -> bool:
    """Whether it equates numbers."""
    segment = squeezed(segment)
    if not 0 < len(segment) <= _LONGEST_SEGMENT or _NO_ARITHMETIC.search(segment):
        return False
    return bool(_EQUATES.search(segment) and NUMBERS.search(segment))
