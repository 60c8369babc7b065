r"""Formulas that an answer wrote as plain text, and that OmniDocBench 1.6 holds ready for its second match.

Protocol: docs/protocols/omnidocbench_v16.md#rescue-candidates.
"""

from __future__ import annotations

import re
from typing import Final

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.formula_delimiters import bare, squeezed

RESCUED: Final = "formula_rescue"
_LONGEST: Final = 220
_OPERATOR = re.compile(
    r"\\(?:frac|sqrt|sum|int|prod|times|div|square|cdots|left|right|approx|xrightarrow|rightarrow|longrightarrow)"
    r"|[=<>≤≥≈÷×±∑∫√→^_□△…%/+\-]"
)
_DIGIT, _CJK, _WORD = re.compile(r"\d"), re.compile("[\u4e00-\u9fff]"), re.compile("[A-Za-z]{4,}")
_INLINE, _DISPLAYED = re.compile(r"\$.*?\$|\\\(.*?\\\)"), re.compile(r"\$\$.*?\$\$|\\\[.*?\\\]", re.DOTALL)
_NO_WORDS = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√^_□△…%/()+\-]|\d|\s")
_ARROWS: Final = ("\\xrightarrow", "\\longrightarrow", "→")
_WRITTEN: Final = (
    *(("……", r" \cdots \cdots "), ("…", r" \cdots "), ("×", r" \times "), ("÷", r" \div "), ("≤", r" \leq ")),
    *(("≥", r" \geq "), ("≠", r" \neq "), ("≈", r" \approx "), ("□", r" \square "), ("△", r" \triangle ")),
    *(("（", "("), ("）", ")"), ("［", "["), ("］", "]"), ("｛", "{"), ("｝", "}")),
)
_REACTION = re.compile(r"(.*?)\\xrightarrow\s*\{([^{}]*)\}(.*)")
_REDOX: Final = "氧化还原反应"
_UNESCAPED = re.compile(r"(?<!\\)([%&])")
_DELIMITED: Final = ("\\begin{", "$$", "\\[")


def rescue_candidate(text: str, *, start: int, end: int, fine_category: str) -> Item | None:
    """The formula that a text is, as an item; None where it looks like none. Reactions join the first match too."""
    if not looks_like_formula(text) or not (content := as_formula(text)):
        return None
    is_reaction = "\\xrightarrow" in content or "\\longrightarrow" in content
    category = "equation_isolated" if is_reaction else RESCUED
    return Item(category=category, content=content, start=start, end=end, fine_category=fine_category)


def looks_like_formula(text: str) -> bool:
    """Whether a short text is more signs and digits than words."""
    text = squeezed(text)
    if not 0 < len(text) <= _LONGEST:
        return False
    formula = bare(text)
    operators = len(_OPERATOR.findall(formula))
    has_arrow = any(arrow in formula for arrow in _ARROWS)
    if operators == 0 and not has_arrow:
        return False
    length = len("".join(formula.split()))
    characters, words = len(_CJK.findall(formula)), len(_WORD.findall(formula))
    if ("□" in formula or "\\square" in formula) and operators >= 1 and words <= 1 and length <= 80:
        return True
    if has_arrow and characters <= 24 and length <= 120:
        return True
    if operators >= 2 and words <= 2 and characters <= 12 and length <= 100 and _DIGIT.search(formula):
        return True
    if operators >= 3 and words == 0 and characters <= 18 and length <= 80:
        return True
    is_marked = _INLINE.search(text) or _DISPLAYED.search(text)
    return bool(is_marked) and operators >= 1 and len(_NO_WORDS.sub("", formula)) <= 18


def as_formula(text: str) -> str:
    r"""The text as LaTeX between `\[` and `\]`; "" where nothing is left of it.

    >>> as_formula("2 × 3 ≈ 6")
    '\\[ 2 \\times 3 \\approx 6 \\]'
    """
    text = bare(squeezed(text.replace("\u3000", " ")))
    for sign, written in _WRITTEN if not text.isascii() else ():
        text = text.replace(sign, written)
    if "\\xrightarrow" in text and (reaction := _REACTION.search(text)):
        text = _as_reaction(*map(str.strip, reaction.groups()))
    text = squeezed(_UNESCAPED.sub(r"\\\1", text))
    return text if not text or text.startswith(_DELIMITED) else f"\\[ {text} \\]"


def _as_reaction(left: str, label: str, right: str) -> str:
    """What stands above the arrow becomes text; the word for redox reactions goes below it."""
    if label and "\\" not in label:
        label = f"\\text{{{label}}}"
    arrow = f"\\xrightarrow{{{label}}}"
    if right.endswith(_REDOX):
        arrow, right = f"\\underset{{{_REDOX}}}{{{arrow}}}", right.removesuffix(_REDOX).strip()
    return f"{left} {arrow} {right}".strip()
