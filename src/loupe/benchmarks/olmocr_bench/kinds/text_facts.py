"""Tests of running text: present, absent, order (docs/protocols/olmocr_bench.md#present-and-absent and #order)."""

from __future__ import annotations

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.data.records import OrderRule, TextRule
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed, threshold_of
from loupe.benchmarks.olmocr_bench.text.page_text import PageText
from loupe.benchmarks.shared.near_matches.text_search import find_near_matches


def check_text(page: PageText, rule: TextRule, max_diffs: int) -> Outcome:
    """Pass if the text is on the page, or for `absent` if it is not.

    A page that is shorter than the text counts as holding it if it is a part of the text
    (docs/protocols/olmocr_bench.md#short-predictions).
    """
    text = rule.text if rule.case_sensitive else rule.text.lower()
    where = cut(page.normalized if rule.case_sensitive else page.lowered, rule.first_n, rule.last_n)
    threshold = threshold_of(text, max_diffs)
    ratio = 1.0 if text in where else fuzz.partial_ratio(text, where) / 100.0
    if (ratio >= threshold) != rule.absent:
        return PASSED
    explanation = "absent_found" if rule.absent else "present_below_threshold"
    return failed(explanation, threshold=threshold, best_ratio=ratio, nearest=nearest(text, where))


def cut(text: str, first: int | None, last: int | None) -> str:
    """The first and last characters, joined without a seam; 0 sets no limit, and both parts may overlap."""
    if first and last:
        return text[:first] + text[-last:]
    if first:
        return text[:first]
    return text[-last:] if last else text


def nearest(text: str, where: str) -> str:
    """The part of a page that is most similar to a text."""
    found = fuzz.partial_ratio_alignment(text, where)
    return where[found.dest_start : found.dest_end] if found else ""


def check_order(page: PageText, rule: OrderRule, max_diffs: int) -> Outcome:
    """Pass if some occurrence of the one text starts before some occurrence of the other."""
    where = page.normalized
    before = find_near_matches(rule.before, where, max_diffs)
    if before is None:
        return _not_found("order_before_not_found", rule.before, where, max_diffs)
    after = find_near_matches(rule.after, where, max_diffs)
    if after is None:
        return _not_found("order_after_not_found", rule.after, where, max_diffs)
    if before.first < after.last:
        return PASSED
    return failed(
        "order_not_satisfied",
        before_at=before.first,
        after_at=after.last,
        nearest=where[after.last : after.last + len(rule.after)],
    )


def _not_found(explanation: str, text: str, where: str, max_diffs: int) -> Outcome:
    return failed(
        explanation,
        threshold=threshold_of(text, max_diffs),
        best_ratio=fuzz.partial_ratio(text, where) / 100.0,
        nearest=nearest(text, where),
    )
