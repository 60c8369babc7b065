"""Cases of the official program: pages with their verdicts, summaries of runs, and single stages.

`tests/oracles/omni_parse_bench` and the cases of `loupe verify` have these forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from loupe.benchmarks.omni_parse_bench.equations import is_plain, prepare_equations, read_equations
from loupe.benchmarks.omni_parse_bench.folding import fold, read_number, squeeze
from loupe.benchmarks.omni_parse_bench.gold import check_equations
from loupe.benchmarks.omni_parse_bench.page import Page, answer_of
from loupe.benchmarks.omni_parse_bench.page_tests import check_page
from loupe.benchmarks.omni_parse_bench.records import GoldError, LatexRule, PageTest, read_test, read_tests
from loupe.benchmarks.omni_parse_bench.view import html_of_markdown, view_text
from loupe.benchmarks.shared.equations.rendering.renderer import check_mathml_tools
from loupe.errors import LoupeError

Pairs = list[tuple[float, float]]


def compare_case(case: Mapping[str, Any]) -> Pairs | None:
    """(ours, official) for everything that a case states; what needs KaTeX is left out where it cannot run."""
    if "gold" in case:
        return list(_page(case)) or None
    if "cp" in case:
        return list(_character(case))
    if "verdicts" in case:
        return list(_run(case))
    return _stage(case["stage"], case["input"], case["expected"])


def with_id(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A case as it is; one of a character is called by its code point."""
    yield {"id": f"opb-char-{case.get('cp')}", **case}


def not_compared() -> tuple[str, ...]:
    """Return what has to be left out on this machine."""
    missing = missing_renderer()
    return (f"LaTeX tests were not compared: {missing}",) if missing else ()


@lru_cache(maxsize=1)
def missing_renderer() -> str:
    """Explain why equations cannot be read here, and what brings it; empty where they can."""
    try:
        check_mathml_tools()
    except LoupeError as error:
        return f"{error.message}; {error.hint}"
    return ""


def _page(case: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    tests = read_tests(case["gold"], case["id"])
    answer = answer_of(case["outputs"], frozenset(case["unsupported"]))
    asked = [test for test in tests if not (isinstance(test.rule, LatexRule) and missing_renderer())]
    prepare_page(answer.html, asked)
    expected = {each["id"]: each["result"] for each in case["expected"]}
    for test, outcome in zip(asked, check_page(answer, asked), strict=True):
        yield float(outcome.verdict == expected[test.id]), 1.0


def prepare_page(html: str | None, tests: list[PageTest]) -> None:
    """Read all equations of a page and its tests together."""
    latex = [(test.rule.latex, True) for test in tests if isinstance(test.rule, LatexRule)]
    if latex:
        spans = Page(html or "").equations
        prepare_equations([*latex, *((span.source, span.display) for span in spans if not span.markup)])


def _character(case: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    sign = chr(int(case["cp"].removeprefix("U+"), 16))
    for name, text in (("between_letters", f"a{sign}b"), ("between_digits", f"5{sign}6"), ("alone", sign)):
        yield float(fold(text) == case[name]), 1.0


def _run(case: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    from loupe.benchmarks.omni_parse_bench.conclusion import GradedTest, summarize_tests

    tests = [GradedTest(**{**each, "tags": tuple(each["tags"])}) for each in case["verdicts"]]
    yield from _same(summarize_tests(tests, with_pages=case["with_pages"]), case["expected"])


def _same(ours: Any, official: Any) -> Iterator[tuple[float, float]]:
    """Objects key by key, in order; numbers as they are, anything else by equality."""
    if isinstance(official, dict) and isinstance(ours, dict):
        yield float(list(ours) == list(official)), 1.0
        for name, value in official.items():
            yield from _same(ours.get(name), value)
    elif isinstance(official, (int, float)) and isinstance(ours, (int, float)):
        yield float(ours), float(official)
    else:
        yield float(ours == official), 1.0


def _stage(stage: str, given: Any, expected: Any) -> Pairs | None:
    match stage:
        case "fold":
            found: Any = {"fold": fold(given), "squeeze": squeeze(given)}
        case "view":
            found = {"text": view_text(given), "seen": view_text(given, alt=False)}
        case "markdown":
            found = html_of_markdown(given)
        case "number":
            number = read_number(given)
            found = number and {"core": number.digits, "negative": number.negative, "percent": number.percent}
        case "plain":
            found = is_plain(given)
        case _ if missing_renderer():
            return None
        case "symbols":
            [symbols] = read_equations([(given["tex"], given["display"])])
            found = None if symbols is None else list(symbols)
        case _:
            found = _gold(given)
    return [(float(found == expected), 1.0)]


def _gold(record: Any) -> str:
    try:
        check_equations({"case": [read_test(record, "case")]})
    except GoldError:
        return "GoldError"
    return "ok"
