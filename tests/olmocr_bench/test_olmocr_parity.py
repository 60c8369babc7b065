"""olmOCR-Bench: every case of the official evaluator but the math ones, which need a renderer, with tolerance 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from loupe.benchmarks.olmocr_bench.conclusion import bootstrap_interval, permutation_test
from loupe.benchmarks.olmocr_bench.page_facts import check_test
from loupe.benchmarks.olmocr_bench.page_text import PageText, parse_html_tables, parse_markdown_tables
from loupe.benchmarks.olmocr_bench.records import TestRecordError, normalize, read_test
from loupe.benchmarks.shared.table_answers.table_grid import Direction, Table
from tests.support.olmocr_sample_cases import sample_parameters
from tests.support.shared import cases

FOLDER = "oracles/olmocr_bench"
CASES = cases(f"{FOLDER}/cases.jsonl")
REFUSED = [case for case in CASES if "load_error" in case["expected"]]
FACTS = [case for case in CASES if case not in REFUSED and case["input"]["test"].get("type") != "math"]
SAMPLES = sample_parameters(math=False)
_NUMBERS = ("threshold", "repeat_count", "ngram_size", "alnum_count")
_DIRECTIONS: tuple[Direction, ...] = ("up", "down", "left", "right")


def test_all_cases_are_here() -> None:
    assert (len(CASES), len(REFUSED), len(FACTS)) == (1048, 23, 737)
    assert len(SAMPLES) in (1, 88)


@pytest.mark.parametrize("case", cases(f"{FOLDER}/normalize.jsonl"), ids=lambda case: case["id"])
def test_a_text_is_normalised_as_officially(case: dict[str, Any]) -> None:
    assert normalize(case["input"]["text"]) == case["expected"]["text"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_a_record_is_refused_as_officially(case: dict[str, Any]) -> None:
    with pytest.raises(TestRecordError) as refused:
        read_test(case["input"]["test"])
    assert refused.value.official == case["expected"]["load_error"]


@pytest.mark.parametrize("case", [*(pytest.param(case, id=case["id"]) for case in FACTS), *SAMPLES])
def test_a_fact_has_the_official_outcome_explanation_and_figures(case: dict[str, Any]) -> None:
    expected = case["expected"]
    page, test = PageText(case["input"]["md"]), read_test(case["input"]["test"])
    if "run_error" in expected:
        with pytest.raises(TypeError):
            check_test(page, test)
        return
    outcome = check_test(page, test)
    assert (outcome.passed, outcome.explanation) == (expected["passed"], expected["explanation_class"])
    assert {name: outcome.figures[name] for name in _NUMBERS if name in expected} == {
        name: expected[name] for name in _NUMBERS if name in expected
    }
    if "best_ratio_3dp" in expected:
        assert f"{outcome.figures['best_ratio']:.3f}" == f"{expected['best_ratio_3dp']:.3f}"


@pytest.mark.parametrize("case", cases(f"{FOLDER}/table_parse.jsonl"), ids=lambda case: case["id"])
def test_tables_are_read_as_officially(case: dict[str, Any]) -> None:
    markdown = case["input"]["md"]
    found = {
        "markdown": [as_official(table) for table in parse_markdown_tables(markdown)],
        "html": [as_official(table) for table in parse_html_tables(markdown)],
    }
    assert found == {kind: [with_sets(table) for table in tables] for kind, tables in case["expected"].items()}


@pytest.mark.parametrize("case", cases(f"{FOLDER}/stats.jsonl"), ids=lambda case: case["id"])
def test_interval_and_permutation_test_are_the_official_ones(case: dict[str, Any]) -> None:
    given, expected = dict(case["input"]), case["expected"]
    function, seed = given.pop("fn"), given.pop("numpy_global_seed")
    if function == "bootstrap_ci":
        found = bootstrap_interval(
            given["scores"],
            given.get("splits"),
            samples=given["n_bootstrap"],
            level=given["ci_level"],
            seed=seed,
        )
        assert found == (expected["lo"], expected["hi"])
    else:
        p = permutation_test(
            given["scores_a"],
            given["scores_b"],
            given.get("splits_a"),
            given.get("splits_b"),
            permutations=given["n_permutations"],
            seed=seed,
        )
        assert p == (expected["observed_diff"], expected["p_value"])


def as_official(table: Table) -> dict[str, Any]:
    """A table in the words of the oracle, its lists as sets."""
    names = [f"{cell.row},{cell.col}" for cell in table.cells]

    def named(cells: Iterable[int]) -> set[str]:
        return {names[index] for index in cells}

    def around(find: Any) -> dict[str, set[str]]:
        return {name: named(find(index)) for index, name in enumerate(names)}

    return {
        "cells": {name: cell.text for name, cell in zip(names, table.cells, strict=True)},
        "heading_cells": named(index for index, cell in enumerate(table.cells) if cell.heading),
        "is_rectangular": table.is_rectangular,
        "top_heading": around(lambda index: table.headings(index, "up")),
        "left_heading": around(lambda index: table.headings(index, "left")),
        **{way: around(lambda index, way=way: table.neighbours(index, way)) for way in _DIRECTIONS},
    }


def with_sets(table: dict[str, Any]) -> dict[str, Any]:
    """The oracle's table with sets for the lists whose order says nothing."""
    return {
        key: set(value)
        if isinstance(value, list)
        else {cell: set(others) for cell, others in value.items()}
        if isinstance(value, dict) and key != "cells"
        else value
        for key, value in table.items()
    }
