"""Every page of the official evaluator's oracles: samples, their order, all their fields, edit distances and TEDS."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import pytest

from loupe.benchmarks.omnidoc.page_match import match_page
from loupe.benchmarks.omnidoc.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench import as_read_from_its_file
from tests.shared import cases, shared

ORACLES = "oracles/omnidocbench"
GAPS = cases(f"{ORACLES}/gaps.jsonl")
TOLERANCE = 1e-9
#: Upstream ends its whole run on these pages: no table of the ground truth has HTML, and none was predicted. Nothing is
#: left to score of tables then; the other elements are matched as ever, and the page says what upstream does.
UPSTREAM_FAILS = {
    "gap-table-form-gt-empty-html-no-pred-table-a": "IndexError",
    "gap-table-form-gt-empty-html-no-pred-table-b": "IndexError",
}


@cache
def ground_truth(path: str) -> dict[str, Any]:
    pages = json.loads(shared(path).read_text(encoding="utf-8"))
    return {page["page_info"]["image_path"]: page for page in pages}


@pytest.mark.parametrize("case", cases(f"{ORACLES}/pages.jsonl"), ids=lambda case: case["id"])
def test_a_real_page_has_the_official_samples(case: dict[str, Any]) -> None:
    page = ground_truth("data/omnidocbench/OmniDocBench_subset.json")[case["input"]["image"]]
    assert_official(matched(page, case), case["expected"])


@pytest.mark.parametrize("case", cases(f"{ORACLES}/synthetic/pages.jsonl"), ids=lambda case: case["id"])
def test_a_synthetic_page_has_the_official_samples(case: dict[str, Any]) -> None:
    page = ground_truth(f"{ORACLES}/synthetic/gt.json")[case["input"]["image"]]
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


def assert_official(match: PageMatch, expected: dict[str, Any], *, whole_run: bool = False) -> None:
    ours = as_official(match, texts_elsewhere=not whole_run)
    for element, samples in expected.items():
        assert len(ours[element]) == len(samples), element
        for row, sample in zip(ours[element], samples, strict=True):
            assert row == approximately(sample)


def approximately(value: Any) -> Any:
    """The same with floats as close as the tolerance; everything else exact."""
    if isinstance(value, dict):
        return {key: approximately(part) for key, part in value.items()}
    return pytest.approx(value, abs=TOLERANCE, rel=0) if isinstance(value, float) else value


def as_official(match: PageMatch, *, texts_elsewhere: bool) -> dict[str, list[dict[str, Any]]]:
    """What the oracles hold. Formulas scored as text follow the texts, if the run has any text (section 9)."""
    has_texts = texts_elsewhere or bool(match.text_block)
    return {
        "text_block": [*map(row_of, (*match.text_block, *(match.formulas_as_text if has_texts else ())))],
        "display_formula": [{**row_of(each), "gt": each.gt, "pred": each.pred} for each in match.display_formula],
        "table": [with_teds(each) for each in match.table],
        "reading_order": [order_of(match)] if match.reading_order else [],
    }


def row_of(sample: MatchedSample) -> dict[str, Any]:
    return {
        "gt_idx": list(sample.gt_idx),
        "pred_idx": "" if sample.latex_zeroed else list(sample.pred_idx) or [""],
        "gt_position": ["" if order is None else order for order in sample.gt_position],
        "pred_position": "" if sample.pred_position is None else sample.pred_position,
        "gt_category_type": sample.gt_category_type,
        "pred_category_type": sample.pred_category_type,
        "gt_attribute": list(sample.gt_attribute),
        "edit": sample.edit,
        "metric": {"Edit_dist": sample.edit_num / sample.upper_len},
        "Edit_num": sample.edit_num,
        "upper_len": sample.upper_len,
        "norm_gt": sample.norm_gt,
        "norm_pred": sample.norm_pred,
        "gt_sha256_16": hashlib.sha256(sample.gt.encode()).hexdigest()[:16],
        "pred_sha256_16": hashlib.sha256(sample.pred.encode()).hexdigest()[:16],
    }


def with_teds(sample: MatchedSample) -> dict[str, Any]:
    row = row_of(sample)
    row["metric"] |= {"TEDS": sample.teds, "TEDS_structure_only": sample.teds_structure_only}
    return row


def order_of(match: PageMatch) -> dict[str, Any]:
    order = match.reading_order
    assert order
    return {
        "gt": list(order.gt),
        "pred": list(order.pred),
        "edit": order.edit,
        "metric": {"Edit_dist": order.edit_num / order.upper_len},
        "Edit_num": order.edit_num,
        "upper_len": order.upper_len,
    }
