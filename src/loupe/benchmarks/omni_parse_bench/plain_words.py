"""What a test asks for, and why an answer failed it, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loupe.benchmarks.omni_parse_bench.records import (
    CellRule,
    LatexRule,
    LayoutRule,
    NumberRule,
    OrderRule,
    PageTest,
    RepeatRule,
    TextRule,
)
from loupe.explanation import Words

_AROUND = {
    "up": "above it",
    "down": "below it",
    "left": "left of it",
    "right": "right of it",
    "left_heading": "as a heading of its row",
    "top_heading": "as a heading of its column",
    "headings": "among the cells above it",
    "row_groups": "among the cells beside it",
    "section": "as the section that it is in",
}
_WHY = {
    "text_missing": "It is not there.",
    "number_missing": "It is not there, digit for digit.",
    "number_sign": "It is there with another sign.",
    "number_percent": "It is there without its percent sign.",
    "equation_refused": "KaTeX refuses the equation of the test.",
    "no_equations": "The answer has no equation that KaTeX reads.",
    "before_missing": "The text that should come first is not there.",
    "after_missing": "The text that should come later is not there.",
    "wrong_order": "Both texts are there, in the wrong order.",
    "no_tables": "The answer has no table.",
    "tables_too_large": "Tables of the answer are too large to be read: a limit of Loupe, upstream has none.",
    "cell_missing": "No table has such a cell.",
    "wrong_around_cell": "Such a cell is there, but not with these cells around it.",
    "no_block": "No block of the answer covers half of the place.",
}


def words_of(test: PageTest) -> Words:
    """What the test asks for."""
    match test.rule:
        case TextRule() as rule:
            return (("text", rule.text), ("", f" must stand on the page{differences(rule.max_diffs)}."))
        case NumberRule() as rule:
            return (("", "The number "), ("text", rule.text), ("", " must stand on the page, digit for digit."))
        case LatexRule() as rule:
            return (("", "The equations must contain, as it is drawn, "), ("latex", rule.latex), ("", "."))
        case OrderRule() as rule:
            after: Words = (("text", rule.after), ("", f"{differences(rule.max_diffs)}."))
            return (("text", rule.before), ("", " must begin before "), *after)
        case RepeatRule() as rule:
            times = "once" if rule.expected_count == 1 else f"{rule.expected_count} times"
            return (("text", rule.text), ("", f" must stand on the page {times}, image descriptions aside."))
        case CellRule() as rule:
            return _cell(rule)
        case LayoutRule() as rule:
            label = rule.kind.replace("_", " ")
            return (("", "The block at the place of "), ("text", rule.text), ("", f" must be of the kind {label}."))


def _cell(rule: CellRule) -> Words:
    around = [
        *rule.relations,
        *(("headings", text) for text in rule.headings),
        *(("row_groups", text) for text in rule.row_groups),
        *([("section", rule.section)] if rule.section else []),
    ]
    words: Words = (("", "A table must have the cell "), ("text", rule.cell))
    for number, (where, text) in enumerate(around):
        joined = " with " if not number else " and " if number == len(around) - 1 else ", "
        words = (*words, ("", joined), ("text", text), ("", f" {around_words(where)}"))
    return (*words, ("", f"{differences(rule.max_diffs)}."))


def around_words(where: str) -> str:
    """Where a part of a table test looks."""
    return _AROUND.get(where, where)


def differences(count: int) -> str:
    """How many characters may differ."""
    return f", up to {count} character{'s' if count > 1 else ''} may differ" if count else ""


def why_failed(fact: Mapping[str, Any]) -> str:
    """Why, out of what is kept of a test in `details`."""
    why, figures = str(fact.get("why", "")), fact.get("figures", {})
    lost = figures.get("not_compared")
    more = f" {lost:,} could not be read." if lost else ""
    match why:
        case "no_output":
            return f"The answer has no {figures.get('output', 'output')}."
        case "malformed":
            return f"The output is malformed: {figures.get('problem', '')}."
        case "equation_missing":
            return f"The {figures.get('equations', 0):,} equations of the answer do not contain it.{more}"
        case "other_count":
            return f"It stands there {figures.get('found', 0):,} times, not {figures.get('expected_count', 1):,}."
        case "other_label":
            return f"It is of the kind {str(figures.get('label', '')).replace('_', ' ')}."
        case _ if why in _WHY:
            return _WHY[why] + _how_near(why, figures) + more
    return why.replace("_", " ").capitalize() + "."


def _how_near(why: str, figures: Mapping[str, Any]) -> str:
    """How similar the nearest text is, where one was looked for and is not there."""
    if not figures.get("best_ratio"):
        return ""
    what = "cell" if why == "cell_missing" else "text"
    near, limit = figures["best_ratio"], max(0.0, figures.get("threshold", 1.0))
    return f" The nearest {what} is {100 * near:.1f} % alike; {100 * limit:.1f} % is the limit."
