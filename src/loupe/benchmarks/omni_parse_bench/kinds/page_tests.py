"""All tests of a page on one answer to it."""

from __future__ import annotations

from collections.abc import Sequence

from loupe.benchmarks.omni_parse_bench.answers import Answer
from loupe.benchmarks.omni_parse_bench.kinds.layout_tests import check_layout
from loupe.benchmarks.omni_parse_bench.kinds.table_tests import check_cell
from loupe.benchmarks.omni_parse_bench.kinds.text_tests import (
    check_latex,
    check_number,
    check_order,
    check_repeat,
    check_text,
)
from loupe.benchmarks.omni_parse_bench.outcomes import UNSUPPORTED, GradingError, Outcome, failed
from loupe.benchmarks.omni_parse_bench.page import Page
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


def check_page(answer: Answer, tests: Sequence[PageTest]) -> list[Outcome]:
    """The outcome of each test. Raises MissingToolError where an equation cannot be read."""
    page = Page(answer.html or "")
    return [_check(answer, page, test) for test in tests]


def _check(answer: Answer, page: Page, test: PageTest) -> Outcome:
    if test.reads in answer.unsupported:
        return UNSUPPORTED
    if problem := answer.malformed.get(test.reads):
        return failed("malformed", problem=problem)
    if (answer.html if test.reads == "html" else answer.blocks) is None:
        return failed("no_output", output=test.reads)
    try:
        if test.reads == "html":
            # A view that cannot be made is every test's fault, also of those that do not look at it.
            _ = page.text
        return _run(answer, page, test)
    except GradingError as error:
        return Outcome("error", "grading_error", {"error": str(error)})


def _run(answer: Answer, page: Page, test: PageTest) -> Outcome:
    match test.rule:
        case TextRule():
            return check_text(page, test.rule)
        case NumberRule():
            return check_number(page, test.rule)
        case LatexRule():
            return check_latex(page, test.rule)
        case OrderRule():
            return check_order(page, test.rule)
        case RepeatRule():
            return check_repeat(page, test.rule)
        case CellRule():
            return check_cell(page, test.rule)
        case LayoutRule():
            return check_layout(answer.blocks or (), test.rule)
