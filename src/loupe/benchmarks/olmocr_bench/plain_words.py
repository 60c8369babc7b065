"""What a test asks for, and why an answer failed it, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loupe.benchmarks.olmocr_bench.data.records import (
    BaselineRule,
    FootnoteRule,
    FormatRule,
    MathRule,
    OrderRule,
    PageTest,
    TableRule,
    TextRule,
)
from loupe.benchmarks.olmocr_bench.kinds.outcomes import NO_ANSWER
from loupe.explanation import Words

_RELATIONS = {
    "up": "above it",
    "down": "below it",
    "left": "left of it",
    "right": "right of it",
    "left_heading": "as a heading of its row",
    "top_heading": "as a heading of its column",
}
_FORMS = {"heading": "a heading", "bold": "bold", "italic": "italic"}
_WHY = {
    "absent_found": "It is there.",
    "present_below_threshold": "It is not there.",
    "order_before_not_found": "The text that should come first is not there.",
    "order_after_not_found": "The text that should come later is not there.",
    "order_not_satisfied": "Both texts are there, in the wrong order.",
    "table_none": "The answer has no table.",
    "table_too_large": "Tables of the answer are too large to be read: a limit of Loupe, upstream has none.",
    "table_cell_not_found": "No table has such a cell.",
    "table_relation_failed": "Such a cell is there, but not with these cells around it.",
    "baseline_no_alnum": "The answer has no letter and no digit.",
    "footnote_marker_missing": "The marker is not there.",
    "footnote_before_missing": "The marker is there, but not behind this text.",
    "footnote_after_missing": "The marker is there, but not in front of this text.",
    "footnote_before_and_after_missing": "The marker is there, but not between these texts.",
    NO_ANSWER: "There is no answer to this page.",
}


def words_of(test: PageTest) -> Words:
    """What the test asks for."""
    match test.rule:
        case TextRule():
            return _text(test.rule, test.max_diffs)
        case OrderRule():
            quoted: Words = (("text", test.rule.before), ("", " must stand before "), ("text", test.rule.after))
            return (*quoted, ("", f"{_differences(test.max_diffs)}."))
        case TableRule():
            return _table(test.rule, test.max_diffs)
        case MathRule():
            dollars = "; what stands between $ is no equation here" if test.rule.ignore_dollar_delimited else ""
            asked: Words = (("", "An equation must contain, as it is drawn, "), ("latex", test.rule.math))
            return (*asked, ("", f"{dollars}."))
        case BaselineRule():
            return (("", _baseline(test.rule)),)
        case FormatRule():
            form = _FORMS[test.rule.format]
            cases = "" if test.rule.case_sensitive else "; capitals do not matter"
            return (("text", test.rule.text), ("", f" must be {form}{_differences(test.max_diffs)}{cases}."))
        case FootnoteRule():
            return _footnote(test.rule, test.max_diffs)


def why_failed(test: PageTest, fact: Mapping[str, Any]) -> str:
    """Why, out of what is kept of a test in `details`."""
    explanation, figures = str(fact["explanation"]), fact.get("figures", {})
    known = _WHY.get(explanation)
    if known:
        return known + _how_near(explanation, figures)
    match explanation:
        case "math_no_match":
            count = figures.get("equations", 0)
            if not count:
                return r"The answer has no equation between \( \), \[ \], $$ $$ or $ $."
            lost = figures.get("not_compared", 0)
            more = f" {lost} could not be compared." if lost else ""
            return f"None of the {count:,} equations of the answer contains it.{more}"
        case "format_not_found":
            form = _FORMS.get(test.rule.format, "") if isinstance(test.rule, FormatRule) else ""
            count = figures.get("formatted_texts", 0)
            what = f"None of the {count:,} texts of the answer that are {form} is this one." if count else ""
            return (what or f"Nothing in the answer is {form}.") + _how_near(explanation, figures)
        case "baseline_blank_expected":
            return f"The answer has {figures.get('alnum_count', 0):,} letters and digits."
        case "baseline_repeats":
            size, count = figures.get("ngram_size", 0), figures.get("repeat_count", 0)
            return f"Its last {size} characters stand {count:,} times in a row at its end."
        case "baseline_disallowed":
            return f"It has {figures.get('disallowed_count', 0):,} such characters."
        case "run_error":
            return (
                f"The official evaluator ends in an error here, so the test has not passed: {figures.get('error', '')}."
            )
    return explanation.replace("_", " ").capitalize() + "."


def _how_near(explanation: str, figures: Mapping[str, Any]) -> str:
    """How similar the nearest text is, where one was looked for and is not there."""
    if explanation == "absent_found" or explanation == "table_relation_failed" or not figures.get("best_ratio"):
        return ""
    what = "cell" if explanation.startswith("table") else "text"
    near, limit = figures["best_ratio"], max(0.0, figures.get("threshold", 1.0))
    return f" The nearest {what} is {100 * near:.1f} % alike; {100 * limit:.1f} % is the limit."


def relation_words(relation: str) -> str:
    """Where a relation of a table test looks."""
    return _RELATIONS.get(relation, relation)


def _text(rule: TextRule, max_diffs: int) -> Words:
    first, last = rule.first_n, rule.last_n
    if first and last:
        where = f" among the first {first:,} and the last {last:,} characters"
    elif first or last:
        where = f" among the {'first' if first else 'last'} {first or last:,} characters"
    else:
        where = ""
    verb = "must not stand" if rule.absent else "must stand"
    cases = "" if rule.case_sensitive else "; capitals do not matter"
    return (("text", rule.text), ("", f" {verb} on the page{where}{_differences(max_diffs)}{cases}."))


def _differences(count: int) -> str:
    if not count:
        return ""
    return f", up to {count} character{'s' if count > 1 else ''} may differ"


def _table(rule: TableRule, max_diffs: int) -> Words:
    words: Words = (("", "A table must have the cell "), ("text", rule.cell or ""))
    for place, (relation, text) in enumerate(rule.relations):
        joined = " with " if not place else " and " if place == len(rule.relations) - 1 else ", "
        words = (*words, ("", joined), ("text", text), ("", f" {relation_words(relation)}"))
    only = "; tables in Markdown do not count" if rule.ignore_markdown_tables else ""
    return (*words, ("", f"{_differences(max_diffs)}{only}."))


def _baseline(rule: BaselineRule) -> str:
    if rule.max_length is not None:
        images = ", image descriptions aside" if rule.max_length_skips_image_alt_tags else ""
        return f"The page is blank: the answer may have at most {rule.max_length:,} letters and digits{images}."
    plausible = (
        " and must have no Chinese or Japanese characters and no emoji" if rule.check_disallowed_characters else ""
    )
    repeats = "no number of" if rule.max_repeats is None else f"{rule.max_repeats:,}"
    return f"The answer must have text, must not end in more than {repeats} repetitions{plausible}."


def _footnote(rule: FootnoteRule, max_diffs: int) -> Words:
    words: Words = (("", "The footnote marker "), ("text", rule.marker), ("", " must be there"))
    if rule.before:
        words = (*words, ("", " behind "), ("text", rule.before))
    if rule.after:
        words = (*words, ("", " and in front of " if rule.before else " in front of "), ("text", rule.after))
    return (*words, ("", f"{_differences(max_diffs)}."))
