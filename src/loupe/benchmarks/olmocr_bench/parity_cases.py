"""Compare for `loupe verify olmocr_bench`: tests, texts and figures of the official evaluator, one case at a time.

Oracle: allenai/olmocr @ f7cfe4c. What is no number is compared as 1 (the same) or 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from loupe.benchmarks.olmocr_bench.conclusion import bootstrap_interval, permutation_test
from loupe.benchmarks.olmocr_bench.equations import check_tools
from loupe.benchmarks.olmocr_bench.page_facts import check_test
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import TestRecordError, normalize, read_test
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError
from loupe.errors import LoupeError

#: Figures that upstream's explanations state, as they are; ratios it rounds to three places.
_EXACT = ("threshold", "repeat_count", "ngram_size", "alnum_count")


def compare_case(case: Mapping[str, Any]) -> list[tuple[float, float]] | None:
    """(ours, official) for everything that a case states; None for a math test where nothing renders."""
    given, expected = case["input"], case["expected"]
    if "text" in given:
        return [(float(normalize(given["text"]) == expected["text"]), 1.0)]
    if "fn" in given:
        return list(_statistics(given, expected))
    if given["test"].get("type") == "math" and missing_renderer():
        return None
    return list(_test(given["test"], given["md"], expected))


def not_compared() -> tuple[str, ...]:
    """Return what has to be left out on this machine."""
    missing = missing_renderer()
    return (f"math tests were not compared: {missing}",) if missing else ()


@lru_cache(maxsize=1)
def missing_renderer() -> str:
    """Explain why equations cannot be rendered here, and what brings it; empty where they can."""
    try:
        check_tools()
    except LoupeError as error:
        return f"{error.message}; {error.hint}"
    return ""


def _test(record: Mapping[str, Any], markdown: str, expected: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    try:
        test = read_test(record)
    except TestRecordError as error:
        yield float(error.official == expected.get("load_error")), 1.0
        return
    if "load_error" in expected:
        yield 0.0, 1.0
        return
    try:
        outcome = check_test(PageText(markdown), test)
    except (TypeError, TableReadError) as error:
        yield float(type(error).__name__ == expected.get("run_error")), 1.0
        return
    if "run_error" in expected:
        yield 0.0, 1.0
        return
    yield float(outcome.passed), float(expected["passed"])
    yield float(outcome.explanation == expected["explanation_class"]), 1.0
    for name in _EXACT:
        if name in expected:
            yield float(outcome.figures.get(name, -1.0)), float(expected[name])
    if "best_ratio_3dp" in expected:
        yield round(float(outcome.figures.get("best_ratio", -1.0)), 3), float(expected["best_ratio_3dp"])


def _statistics(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    seed = given["numpy_global_seed"]
    if given["fn"] == "bootstrap_ci":
        low, high = bootstrap_interval(
            given["scores"], given.get("splits"), samples=given["n_bootstrap"], level=given["ci_level"], seed=seed
        )
        yield low, expected["lo"]
        yield high, expected["hi"]
        return
    difference, p_value = permutation_test(
        given["scores_a"],
        given["scores_b"],
        given.get("splits_a"),
        given.get("splits_b"),
        permutations=given["n_permutations"],
        seed=seed,
    )
    yield difference, expected["observed_diff"]
    yield p_value, expected["p_value"]
