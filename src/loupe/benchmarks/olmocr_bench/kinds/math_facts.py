"""Math tests: an equation of the page must contain the reference as rendered.

Protocol: docs/protocols/olmocr_bench.md#math-decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.data.records import MathRule
from loupe.benchmarks.olmocr_bench.equations.containment import render_and_match
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed
from loupe.benchmarks.olmocr_bench.text.page_text import PageText


def check_math(page: PageText, rule: MathRule) -> Outcome:
    """Pass on an equation that is the reference to the letter, else on one whose rendering contains that of it.

    Raises MissingToolError where equations would have to be rendered and cannot be.
    """
    equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
    if rule.math in equations:
        return PASSED
    if not equations:
        return failed("math_no_match", equations=0)
    ranked = _ranked(page, rule)
    outcome = render_and_match(rule.math, ranked)
    if outcome.matched is not None:
        return PASSED
    ratio = fuzz.ratio(ranked[0], rule.math) / 100
    lost = {"not_compared": outcome.not_compared} if outcome.not_compared else {}
    return failed("math_no_match", equations=len(equations), best_ratio=ratio, nearest=ranked[0], **lost)


def questions(page: PageText, rules: Iterable[MathRule]) -> Iterator[tuple[str, list[str]]]:
    """The references that have to be rendered to be found, each with the equations that they are compared with."""
    for rule in rules:
        equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
        if equations and rule.math not in equations:
            yield rule.math, _ranked(page, rule)


def _ranked(page: PageText, rule: MathRule) -> list[str]:
    """The different equations of the page, the likest first; of equally like ones the earlier."""
    equations = dict.fromkeys(page.equations(ignore_dollars=rule.ignore_dollar_delimited))
    return sorted(equations, key=lambda equation: -fuzz.ratio(equation, rule.math))
