"""Every page of the official evaluator's oracles: samples, their order, all their fields, edit distances and TEDS."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import as_read_from_its_file
from loupe.scoring.oracles import read_oracle
from tests.omnidocbench.official_samples import assert_official
from tests.support.shared import cases, shared, shared_parameters

ORACLES = "oracles/omnidocbench"
GAPS = cases(f"{ORACLES}/gaps.jsonl")
#: Upstream ends its whole run on these pages: no table of the ground truth has HTML, and none was predicted. Nothing is
#: left to score of tables then; the other elements are matched as ever, and the page says what upstream does.
UPSTREAM_FAILS = {
    "gap-table-form-gt-empty-html-no-pred-table-a": "IndexError",
    "gap-table-form-gt-empty-html-no-pred-table-b": "IndexError",
}


@cache
def ground_truth(*, synthetic: bool) -> dict[str, Any]:
    real = "data/omnidocbench/OmniDocBench_subset.json"
    data = read_oracle("omnidocbench/synthetic/gt.json") if synthetic else shared(real).read_bytes()
    return {page["page_info"]["image_path"]: page for page in json.loads(data)}


@pytest.mark.parametrize("case", shared_parameters(f"{ORACLES}/pages.jsonl"))
def test_a_real_page_has_the_official_samples(case: dict[str, Any]) -> None:
    page = ground_truth(synthetic=False)[case["input"]["image"]]
    assert_official(matched(page, case), case["expected"])


@pytest.mark.parametrize("case", cases(f"{ORACLES}/synthetic/pages.jsonl"), ids=lambda case: case["id"])
def test_a_synthetic_page_has_the_official_samples(case: dict[str, Any]) -> None:
    page = ground_truth(synthetic=True)[case["input"]["image"]]
    assert_official(matched(page, case), case["expected"])


@pytest.mark.parametrize(
    "case", [case for case in GAPS if case["id"] not in UPSTREAM_FAILS], ids=lambda case: case["id"]
)
def test_an_edge_case_has_the_official_samples(case: dict[str, Any]) -> None:
    match = matched(case["input"]["gt_page"], case)
    assert_official(match, case["expected"], whole_run=True)
    assert match.facts.upstream_error == ""


@pytest.mark.parametrize("case", [case for case in GAPS if case["id"] in UPSTREAM_FAILS], ids=lambda case: case["id"])
def test_where_upstream_ends_the_page_is_matched_without_tables_and_says_so(case: dict[str, Any]) -> None:
    assert case["expected"] == {"error": UPSTREAM_FAILS[case["id"]]}
    match = matched(case["input"]["gt_page"], case)
    assert match.facts.upstream_error == UPSTREAM_FAILS[case["id"]]
    assert match.table == ()
    assert match.text_block


def test_all_cases_with_an_official_error_are_listed() -> None:
    assert {case["id"] for case in GAPS if "error" in case["expected"]} == set(UPSTREAM_FAILS)


def matched(page: dict[str, Any], case: dict[str, Any]) -> PageMatch:
    return match_page(page, as_read_from_its_file(case["input"]["pred"]))
