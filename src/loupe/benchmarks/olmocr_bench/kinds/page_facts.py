"""All tests of a page on one answer to it."""

from __future__ import annotations

from collections.abc import Sequence

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
from loupe.benchmarks.olmocr_bench.kinds.baseline import check_baseline
from loupe.benchmarks.olmocr_bench.kinds.footnotes import check_footnote
from loupe.benchmarks.olmocr_bench.kinds.formats import check_format
from loupe.benchmarks.olmocr_bench.kinds.math_facts import check_math
from loupe.benchmarks.olmocr_bench.kinds.outcomes import Outcome, failed
from loupe.benchmarks.olmocr_bench.kinds.table_facts import check_table
from loupe.benchmarks.olmocr_bench.kinds.text_facts import check_order, check_text
from loupe.benchmarks.olmocr_bench.text.page_text import PageText
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError


def check_page(markdown: str, tests: Sequence[PageTest]) -> list[Outcome]:
    """The outcome of each test. Raises MissingToolError where an equation cannot be rendered."""
    page = PageText(markdown)
    return [_check_or_fail_like_official(page, test) for test in tests]


def check_test(page: PageText, test: PageTest) -> Outcome:
    """The outcome of one test. Raises TableReadError or TypeError where upstream raises in running it."""
    match test.rule:
        case TextRule():
            return check_text(page, test.rule, test.max_diffs)
        case OrderRule():
            return check_order(page, test.rule, test.max_diffs)
        case TableRule():
            return check_table(page, test.rule, test.max_diffs)
        case MathRule():
            return check_math(page, test.rule)
        case BaselineRule():
            return check_baseline(page.markdown, test.rule)
        case FormatRule():
            return check_format(page.markdown, test.rule, test.max_diffs)
        case FootnoteRule():
            return check_footnote(page.markdown, test.rule, test.max_diffs)


def _check_or_fail_like_official(page: PageText, test: PageTest) -> Outcome:
    """A test that raises has not passed; upstream then voids the whole candidate, see `missing`.

    Protocol: docs/protocols/olmocr_bench.md#exceptions.
    """
    try:
        return check_test(page, test)
    except TableReadError as error:
        return failed("run_error", error=str(error))
    except TypeError as error:
        return failed("run_error", error=f"TypeError: {error}")
