"""Explain the tests of a page in the report: what each asks for, and what a failed one found instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rapidfuzz import fuzz

from loupe.benchmarks.omni_parse_bench.folding import fold_short
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.page import Page
from loupe.benchmarks.omni_parse_bench.page_tests import related
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
from loupe.benchmarks.shared.answer_texts import AROUND, nearest_text
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures
from loupe.benchmarks.shared.table_answers.html_grids import cell_at, parsed_table
from loupe.benchmarks.shared.table_answers.table_grid import TableLimitError
from loupe.explanation import Comparison, Fact, ParsedTable, Words
from loupe.quantities import counted, percent

#: Equations drawn for one answer.
_MOST_DRAWN = 60
#: A longer answer is not searched again: what was kept when it was scored has to do.
_LONGEST_SEARCHED = 50_000


def page_facts(
    document: str,
    tests: Sequence[PageTest],
    kept: Sequence[Mapping[str, Any]],
    html: str | None,
    pictures: EquationPictures,
) -> list[Fact]:
    """The tests of a page that count, in order; `kept` is what `details` hold of them."""
    by_id = {str(fact["id"]): fact for fact in kept if fact.get("verdict") in ("pass", "fail")}
    page = Page(html) if html is not None and len(html) <= _LONGEST_SEARCHED else None
    asked = [(test, by_id[test.id]) for test in tests if test.id in by_id]
    facts = [_fact(document, test, fact, page) for test, fact in asked]
    failed = [
        (place, test.rule.latex)
        for place, (test, _) in enumerate(asked)
        if isinstance(test.rule, LatexRule) and not facts[place].passed
    ][:_MOST_DRAWN]
    drawn = pictures.pairs([(_nearest_equation(page, latex), latex) for _, latex in failed])
    for (place, _), equations in zip(failed, drawn, strict=True):
        facts[place] = replace(facts[place], equations=equations)
    return facts


def _fact(document: str, test: PageTest, kept: Mapping[str, Any], page: Page | None) -> Fact:
    fact = Fact(
        ident=test.id,
        kind=test.kind,
        category=test.family,
        document=document,
        passed=kept["verdict"] == "pass",
        words=words_of(test),
    )
    if fact.passed:
        return fact
    fact = replace(fact, why=why_failed(kept))
    figures = kept.get("figures", {})
    try:
        fact = replace(fact, comparisons=tuple(_comparisons(test, str(kept.get("why", "")), figures, page)))
        if isinstance(test.rule, CellRule) and page is not None:
            return replace(fact, table=_table(page, figures))
    except (GradingError, TableLimitError):
        pass
    return fact


def _comparisons(test: PageTest, why: str, figures: Mapping[str, Any], page: Page | None) -> Iterator[Comparison]:
    match test.rule:
        case TextRule() | OrderRule() if page is None:
            if found := figures.get("nearest"):
                yield Comparison(label="In the answer", wanted="", found=str(found))
        case TextRule() as rule if page is not None:
            yield _nearest(rule.text, page, figures)
        case OrderRule() as rule if page is not None:
            yield from _order(rule, why, figures, page)
        case CellRule() as rule:
            yield from _cells(rule, why, figures)
        case LayoutRule() as rule if why == "other_label":
            label = f"The block there, of the kind {str(figures.get('label', '')).replace('_', ' ')}"
            yield Comparison(label=label, wanted=rule.text, found=str(figures.get("nearest", "")))
        case _:
            pass


def _nearest(text: str, page: Page, figures: Mapping[str, Any]) -> Comparison:
    return nearest_text("Nearest text in the answer", fold_short(text), page.folded, figures.get("threshold"))


def _order(rule: OrderRule, why: str, figures: Mapping[str, Any], page: Page) -> Iterator[Comparison]:
    if why != "wrong_order":
        yield _nearest(rule.before if why == "before_missing" else rule.after, page, figures)
        return
    where = page.squeezed if figures.get("squeezed") else page.folded
    for name, text in (("after_at", rule.after), ("before_at", rule.before)):
        start = int(figures.get(name, 0))
        end = start + len(fold_short(text))
        label = "Begins first" if name == "after_at" else "Should begin before that"
        yield Comparison(
            label=f"{label} (character {start + 1:,} of {len(where):,})",
            wanted=fold_short(text),
            found=where[start:end],
            before=where[max(0, start - AROUND) : start],
            after=where[end : end + AROUND],
        )


def _cells(rule: CellRule, why: str, figures: Mapping[str, Any]) -> Iterator[Comparison]:
    """The cell most similar to the one wanted, or what stands around it in place of what should."""
    if why == "cell_missing":
        yield Comparison(
            label="Nearest cell",
            wanted=rule.cell,
            found=str(figures.get("nearest", "")),
            similarity=figures.get("best_ratio"),
            enough=figures.get("threshold"),
        )
    elif "relation" in figures:
        yield Comparison(
            label=f"What stands {around_words(str(figures['relation']))}",
            wanted=str(figures.get("expected", "")),
            found=str(figures.get("instead", "")),
            similarity=figures.get("relation_ratio"),
        )


def _table(page: Page, figures: Mapping[str, Any]) -> ParsedTable | None:
    """The table that was held against the test, with the cell in question; None where there is none."""
    number, tables = figures.get("table"), page.tables
    if not isinstance(number, int) or not 0 <= number < len(tables):
        return None
    table, around = tables[number]
    chosen = cell_at(table.grid, figures.get("row"), figures.get("col"))
    if chosen is None:
        return None
    relation = figures.get("relation")
    others = related(around, chosen, relation) if isinstance(relation, str) else set()
    return parsed_table(table.grid, table.texts, place=(number, len(tables)), chosen=chosen, related=others)


def _nearest_equation(page: Page | None, latex: str) -> str | None:
    """The equation of the page that is likest to the reference as it is written; the first of equals."""
    if page is None:
        return None
    try:
        written = [span.source for span in page.equations if not span.markup]
    except GradingError:
        return None
    return max(written, key=lambda source: fuzz.ratio(source, latex), default=None)


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
    """The words that the test asks for."""
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
    """Name the place where a part of a table test looks."""
    return _AROUND.get(where, where)


def differences(count: int) -> str:
    """Say how many characters may differ."""
    return f", up to {counted(count, 'character')} may differ" if count else ""


def why_failed(fact: Mapping[str, Any]) -> str:
    """Explain a failure, from what `details` keeps about a test."""
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
    """Say how similar the nearest text is, if one was looked for and is not there."""
    if not figures.get("best_ratio"):
        return ""
    what = "cell" if why == "cell_missing" else "text"
    near, limit = figures["best_ratio"], max(0.0, figures.get("threshold", 1.0))
    return f" The nearest {what} is {percent(near)} alike; {percent(limit)} is the limit."
