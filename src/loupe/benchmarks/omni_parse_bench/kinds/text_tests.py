"""Tests of text: present, order, repeat (docs/protocols/omni_parse_bench.md#text, #numbers and #latex)."""

from __future__ import annotations

import re

from rapidfuzz import fuzz

from loupe.benchmarks.omni_parse_bench.equations.appearance import contains_in_row, is_plain
from loupe.benchmarks.omni_parse_bench.equations.reading import read_equations
from loupe.benchmarks.omni_parse_bench.outcomes import PASSED, Outcome, failed
from loupe.benchmarks.omni_parse_bench.page import Page
from loupe.benchmarks.omni_parse_bench.records import LatexRule, NumberRule, OrderRule, RepeatRule, TextRule
from loupe.benchmarks.omni_parse_bench.text.folding import fold_short
from loupe.benchmarks.omni_parse_bench.text.numbers import number_in

#: A ratio may be so much below its threshold, by floating point.
_MARGIN = 1e-9


def check_text(page: Page, rule: TextRule) -> Outcome:
    """Pass if the text is on the page, with blanks or without."""
    wanted = fold_short(rule.text)
    if contains(page, wanted, rule.max_diffs):
        return PASSED
    return not_found("text_missing", wanted, page, rule.max_diffs)


def contains(page: Page, wanted: str, max_diffs: int) -> bool:
    """Whether a folded text is in the folded page, or both without white space."""
    squeezed = "".join(wanted.split())
    return _is_near(wanted, page.folded, max_diffs) or _is_near(squeezed, page.squeezed, max_diffs)


def _is_near(wanted: str, where: str, max_diffs: int) -> bool:
    if not wanted or wanted in where:
        return bool(wanted)
    if not max_diffs:
        return False
    least = 1.0 - max_diffs / len(wanted) - _MARGIN
    return ratio(wanted, where) / 100.0 >= least


def ratio(wanted: str, where: str) -> float:
    """How alike a text is to the part of the page that is most like it, in percent; to all of a shorter page."""
    return fuzz.partial_ratio(wanted, where) if len(where) >= len(wanted) else fuzz.ratio(wanted, where)


def not_found(why: str, wanted: str, page: Page, max_diffs: int) -> Outcome:
    """That a text is missing, with what is nearest to it."""
    found = fuzz.partial_ratio_alignment(wanted, page.folded)
    nearest = page.folded[found.dest_start : found.dest_end] if found and page.folded else ""
    threshold = 1.0 - max_diffs / len(wanted)
    return failed(why, threshold=threshold, best_ratio=ratio(wanted, page.folded) / 100.0, nearest=nearest)


def check_number(page: Page, rule: NumberRule) -> Outcome:
    """Pass if the number is there, with its sign and percent sign."""
    why = number_in(rule.number, page.folded)
    return failed(why) if why else PASSED


def check_latex(page: Page, rule: LatexRule) -> Outcome:
    """Pass if what the equation shows is in the page's equations, or in its text where that loses nothing.

    Raises MissingToolError where KaTeX cannot run, LoupeError where the browser cannot be started.
    """
    why = _missing_symbols(page, rule.latex)
    if not why.why or (is_plain(rule.latex) and contains(page, fold_short(f"${rule.latex}$"), 0)):
        return PASSED
    return why


def _missing_symbols(page: Page, latex: str) -> Outcome:
    [wanted] = read_equations([(latex, True)])
    if wanted is None:
        return failed("equation_refused")
    if not wanted:
        return PASSED
    equations = page.drawn_equations
    lost = {"not_compared": equations.lost} if equations.lost else {}
    if not any(equations.symbols):
        return failed("no_equations", **lost)
    if contains_in_row(wanted, equations.symbols):
        return PASSED
    return failed("equation_missing", equations=len(equations.symbols), **lost)


def check_order(page: Page, rule: OrderRule) -> Outcome:
    """Pass if the one text begins before the other: both with blanks, or, where one is missing so, both without."""
    texts = fold_short(rule.before), fold_short(rule.after)
    if _is_written_so(page.folded, *texts):
        return PASSED
    before, after = (page.near(text, rule.max_diffs, squeezed=False) for text in texts)
    squeezed = before is None or after is None
    if squeezed:
        before, after = (page.near("".join(text.split()), rule.max_diffs, squeezed=True) for text in texts)
    if before is None:
        return not_found("before_missing", texts[0], page, rule.max_diffs)
    if after is None:
        return not_found("after_missing", texts[1], page, rule.max_diffs)
    if before.first < after.last:
        return PASSED
    return failed("wrong_order", before_at=before.first, after_at=after.last, squeezed=int(squeezed))


def _is_written_so(where: str, before: str, after: str) -> bool:
    """Whether both are there to the letter, once, in this order: near matches then only add to that."""
    first, last = where.find(before), where.find(after)
    return 0 <= first < last and first == where.rfind(before) and last == where.rfind(after)


def check_repeat(page: Page, rule: RepeatRule) -> Outcome:
    """Pass if the text, as whole words, is there as often as it is printed."""
    signs = r"\s*".join(re.escape(sign) for sign in fold_short(rule.text) if not sign.isspace())
    found = len(re.findall(rf"(?<![^\W_]){signs}(?![^\W_])", page.folded_without_images))
    if found == rule.expected_count:
        return PASSED
    return failed("other_count", found=found, expected_count=rule.expected_count)
