"""What the report shows of the tests of a page: in plain words, and for those that failed what stands there instead.

Outcomes are those that were stored when the answer was scored; only the evidence is looked up again in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rapidfuzz import fuzz

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
from loupe.benchmarks.olmocr_bench.kinds.footnotes import clean
from loupe.benchmarks.olmocr_bench.kinds.outcomes import NO_ANSWER, threshold_of
from loupe.benchmarks.olmocr_bench.kinds.text_facts import cut
from loupe.benchmarks.olmocr_bench.plain_words import relation_words, why_failed, words_of
from loupe.benchmarks.olmocr_bench.text.page_text import PageText
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures
from loupe.benchmarks.shared.nearest_text import AROUND, nearest_text
from loupe.benchmarks.shared.table_answers.parsed_tables import cell_at, parsed_table
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError
from loupe.explanation import Comparison, Fact, ParsedTable

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
    """What formats and footnotes keep of the nearest text."""
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
