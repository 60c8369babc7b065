"""Math tests: an equation of the page must contain the reference as rendered (protocol, section 8.2)."""

from __future__ import annotations

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr.equations import render_and_match
from loupe.benchmarks.olmocr.outcomes import PASSED, Outcome, failed
from loupe.benchmarks.olmocr.page_text import PageText
from loupe.benchmarks.olmocr.records import MathRule


def check_math(page: PageText, rule: MathRule) -> Outcome:
    """Pass on an equation that is the reference to the letter, else on one whose rendering contains that of it.

    Raises MissingToolError where equations would have to be rendered and cannot be.
    """
    equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
    if rule.math in equations:
        return PASSED
    if not equations:
        return failed("math_no_match", equations=0)
    ranked = sorted(((fuzz.ratio(equation, rule.math), equation) for equation in equations), key=lambda each: -each[0])
    if render_and_match(rule.math, [equation for _, equation in ranked]).matched is not None:
        return PASSED
    ratio, nearest = ranked[0]
    return failed("math_no_match", equations=len(equations), best_ratio=ratio / 100, nearest=nearest)
