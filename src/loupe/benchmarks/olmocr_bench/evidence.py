"""Explain the tests of a page in the report: what each asks for, and what a failed one found instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.page_facts import clean, cut
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import (
    NO_ANSWER,
    BaselineRule,
    FootnoteRule,
    FormatRule,
    MathRule,
    OrderRule,
    PageTest,
    TableRule,
    TextRule,
    threshold_of,
)
from loupe.benchmarks.shared.answer_texts import AROUND, nearest_text
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures
from loupe.benchmarks.shared.table_answers.html_grids import cell_at, parsed_table
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError
from loupe.explanation import Comparison, Fact, ParsedTable, Words
from loupe.quantities import counted, percent

#: Equations drawn for one answer.
_MOST_DRAWN = 60
#: A longer answer is not searched again: what was kept when it was scored has to do.
_LONGEST_SEARCHED = 50_000


def page_facts(
    tests: Sequence[PageTest], kept: Sequence[Mapping[str, Any]], repeats: Sequence[str], pictures: EquationPictures
) -> list[Fact]:
    """All tests of a page, in order; `kept` is what `details` hold of them, `repeats` are the answers to the page."""
    by_id = {str(fact["id"]): fact for fact in kept}
    pages = [PageText(markdown) if len(markdown) <= _LONGEST_SEARCHED else None for markdown in repeats]
    asked = [(test, by_id[test.id], _explained(pages, by_id[test.id])) for test in tests if test.id in by_id]
    facts = [_fact(test, fact, page) for test, fact, page in asked]
    failed = [
        (place, test.rule, fact, page)
        for place, (test, fact, page) in enumerate(asked)
        if not fact["passed"] and isinstance(test.rule, MathRule)
    ][:_MOST_DRAWN]
    drawn = pictures.pairs([(_nearest_equation(page, rule, fact), rule.math) for _, rule, fact, page in failed])
    for (place, *_), equations in zip(failed, drawn, strict=True):
        facts[place] = replace(facts[place], equations=equations)
    return facts


def _explained(pages: Sequence[PageText | None], kept: Mapping[str, Any]) -> PageText | None:
    """The first of the answers that failed the test, which is what is kept of it."""
    return pages[min(int(kept.get("repeat", 1)), len(pages)) - 1]


def _fact(test: PageTest, kept: Mapping[str, Any], page: PageText | None) -> Fact:
    fact = Fact(
        ident=test.id,
        kind=test.kind,
        category=test.category,
        document=test.pdf,
        passed=bool(kept["passed"]),
        words=words_of(test),
    )
    if fact.passed:
        return fact
    why = why_failed(test, kept)
    if kept["explanation"] == NO_ANSWER:
        return replace(fact, why=why)
    share = kept.get("share")
    repeats = f" (the first of the answers that fail; {share:.0%} of them pass)" if share is not None else ""
    try:
        fact = replace(fact, comparisons=tuple(_comparisons(test, kept, page)))
        if isinstance(test.rule, TableRule) and page is not None:
            fact = replace(fact, table=_table(page, test.rule, kept.get("figures", {})))
    except TableReadError as error:
        why = f"{why} Its tables cannot be read: {error}"
    return replace(fact, why=why + repeats)


def _comparisons(test: PageTest, kept: Mapping[str, Any], page: PageText | None) -> Iterator[Comparison]:
    match test.rule:
        case TextRule() | OrderRule() if page is None:
            if found := kept.get("figures", {}).get("nearest"):
                yield Comparison(label="In the answer", wanted="", found=str(found))
        case TextRule() as rule if page is not None:
            text = rule.text if rule.case_sensitive else rule.text.lower()
            where = cut(page.normalized if rule.case_sensitive else page.lowered, rule.first_n, rule.last_n)
            label = "Found in the answer" if rule.absent else "Nearest text in the answer"
            yield nearest_text(label, text, where, threshold_of(text, test.max_diffs))
        case OrderRule() as rule if page is not None:
            yield from _order(rule, test.max_diffs, kept, page)
        case TableRule() as rule:
            yield from _cells(rule, kept)
        case FormatRule() | FootnoteRule():
            yield from _stored(test, kept)
        case BaselineRule():
            if found := kept.get("figures", {}).get("nearest"):
                yield Comparison(label="In the answer", wanted="", found=str(found))
        case _:
            pass


def _order(rule: OrderRule, max_diffs: int, kept: Mapping[str, Any], page: PageText) -> Iterator[Comparison]:
    where, explanation, figures = page.normalized, kept["explanation"], kept.get("figures", {})
    if explanation != "order_not_satisfied":
        text = rule.before if explanation == "order_before_not_found" else rule.after
        yield nearest_text("Nearest text in the answer", text, where, threshold_of(text, max_diffs))
        return
    for name, text in (("after_at", rule.after), ("before_at", rule.before)):
        start = int(figures.get(name, 0))
        end = start + len(text)
        label = "Stands first" if name == "after_at" else "Should stand before that"
        yield Comparison(
            label=f"{label} (character {start + 1:,} of {len(where):,})",
            wanted=text,
            found=where[start:end],
            before=where[max(0, start - AROUND) : start],
            after=where[end : end + AROUND],
        )


def _cells(rule: TableRule, kept: Mapping[str, Any]) -> Iterator[Comparison]:
    """The cell most similar to the one looked for, and what stands where the first wrong relation looks."""
    figures = kept.get("figures", {})
    if "nearest" not in figures or rule.cell is None:
        return
    if figures["nearest"] != rule.cell:
        yield Comparison(
            label="Nearest cell",
            wanted=rule.cell,
            found=str(figures["nearest"]),
            similarity=figures.get("best_ratio"),
            enough=figures.get("threshold"),
        )
    if "relation" in figures:
        yield Comparison(
            label=f"What stands {relation_words(str(figures['relation']))}",
            wanted=str(figures["expected"]),
            found=str(figures.get("instead", "")),
            similarity=figures.get("relation_ratio"),
            enough=figures.get("relation_threshold"),
        )


def _table(page: PageText, rule: TableRule, figures: Mapping[str, Any]) -> ParsedTable | None:
    """The table with the most similar cell; None where there is none. Raises TableReadError."""
    tables = [*([] if rule.ignore_markdown_tables else page.markdown_tables), *page.html_tables]
    number = figures.get("table")
    if not isinstance(number, int) or not 0 <= number < len(tables):
        return None
    table = tables[number]
    chosen = cell_at(table.table, figures.get("row"), figures.get("col"))
    if chosen is None:
        return None
    relation = figures.get("relation")
    related = table.related(chosen, relation) if isinstance(relation, str) else set()
    return parsed_table(table.table, table.texts, place=(number, len(tables)), chosen=chosen, related=related)


def _stored(test: PageTest, kept: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yield what formats and footnotes store about the nearest text."""
    figures = kept.get("figures", {})
    if isinstance(test.rule, FormatRule):
        wanted = test.rule.text if test.rule.case_sensitive else test.rule.text.lower()
        if figures.get("nearest"):
            yield Comparison(
                label=f"Nearest text that is {test.rule.format}",
                wanted=wanted,
                found=str(figures["nearest"]),
                similarity=figures.get("best_ratio"),
                enough=figures.get("threshold"),
            )
    elif isinstance(test.rule, FootnoteRule):
        for side, text in (("before", test.rule.before), ("after", test.rule.after)):
            if f"{side}_threshold" in figures:
                yield Comparison(
                    label=f"Letters and digits {side} the marker",
                    wanted=clean(text),
                    found=str(figures.get(f"{side}_nearest", "")),
                    similarity=figures.get(f"{side}_ratio"),
                    enough=figures.get(f"{side}_threshold"),
                )


def _nearest_equation(page: PageText | None, rule: MathRule, kept: Mapping[str, Any]) -> str | None:
    """The equation of the page that is likest to the reference as it is written; the first of equals."""
    if page is None:
        found = kept.get("figures", {}).get("nearest")
        return None if found is None else str(found)
    equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
    return max(equations, key=lambda equation: fuzz.ratio(equation, rule.math), default=None)


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
    """The words that the test asks for."""
    match test.rule:
        case TextRule():
            return _text(test.rule, test.max_diffs)
        case OrderRule():
            quoted: Words = (("text", test.rule.before), ("", " must stand before "), ("text", test.rule.after))
            return (*quoted, ("", f"{_differences(test.max_diffs)}."))
        case TableRule():
            return _table_words(test.rule, test.max_diffs)
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
    """Explain a failure, from what `details` keeps about a test."""
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
    """Say how similar the nearest text is, if one was looked for and is not there."""
    if explanation == "absent_found" or explanation == "table_relation_failed" or not figures.get("best_ratio"):
        return ""
    what = "cell" if explanation.startswith("table") else "text"
    near, limit = figures["best_ratio"], max(0.0, figures.get("threshold", 1.0))
    return f" The nearest {what} is {percent(near)} alike; {percent(limit)} is the limit."


def relation_words(relation: str) -> str:
    """Name the place where a relation of a table test looks."""
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
    return f", up to {counted(count, 'character')} may differ"


def _table_words(rule: TableRule, max_diffs: int) -> Words:
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
