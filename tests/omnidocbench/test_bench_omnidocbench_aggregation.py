"""Aggregation and headline of OmniDocBench, from the official evaluator's own samples: 158 whole runs, within 1e-6."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench.aggregation import (
    OFFICIAL_METRICS,
    ElementMetrics,
    headline_row,
    metric_result,
    per_page_edit,
    unrounded_row,
)
from loupe.benchmarks.omnidocbench.conclusion import attribute_slices
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, samples_by_element
from loupe.scoring.oracles import read_oracle
from tests.support.omnidocbench.oracle_pages import differences, page_of_samples
from tests.support.shared import cases, shared, shared_cases, shared_parameters

ORACLES = "oracles/omnidocbench"
#: 43 runs over pages of our own, and 45 over nine real ones.
RUNS = [
    *(
        pytest.param("synthetic/", case, id=f"synthetic/{case['id']}")
        for case in cases(f"{ORACLES}/synthetic/runs.jsonl")
    ),
    *shared_parameters(f"{ORACLES}/runs.jsonl", ""),
]
CONFIGURED = [case for case in cases(f"{ORACLES}/gaps_config.jsonl") if "error" not in case["expected"]]


@lru_cache
def attributes_of(folder: str) -> dict[str, dict[str, Any]]:
    real = "data/omnidocbench/OmniDocBench_subset.json"
    data = read_oracle("omnidocbench/synthetic/gt.json") if folder else shared(real).read_bytes()
    return {page["page_info"]["image_path"]: page["page_info"]["page_attribute"] for page in json.loads(data)}


@lru_cache
def official_pages(folder: str) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in (cases if folder else shared_cases)(f"{ORACLES}/{folder}pages.jsonl")}


def pages_of_run(folder: str, case: dict[str, Any]) -> list[ScoredPage]:
    found = []
    for image in case["input"]["pages"]:
        named = case["input"]["predictions"][image[:-4]]
        if named != "MISSING":
            samples = official_pages(folder)[named.removeprefix("pages.jsonl id ")]["expected"]
            found.append(page_of_samples(image, attributes_of(folder)[image], samples))
    return found


@pytest.mark.parametrize(("folder", "case"), RUNS)
def test_figures_of_whole_runs_are_the_official_ones(folder: str, case: dict[str, Any]) -> None:
    pages, expected = pages_of_run(folder, case), case["expected"]
    result = metric_result(pages)
    samples = samples_by_element(pages)
    assert differences(result, expected["metric_result"]) == []
    for element, edits in expected["per_page_edit"].items():
        assert differences(per_page_edit(samples[element]) or None, edits) == []
    columns = {name: value for name, value in expected["notebook"].items() if name in unrounded_row(result)}
    assert len(columns) == 6
    row = {name: 0.0 if value is None and "TEDS" in name else value for name, value in unrounded_row(result).items()}
    assert differences({name: row[name] for name in columns}, columns) == []


@pytest.mark.parametrize(("folder", "case"), RUNS[::4])
def test_slices_by_attributes_of_blocks_are_the_official_figures(folder: str, case: dict[str, Any]) -> None:
    """Every figure of the official `group` tables of text and tables is there, and none else."""
    slices = attribute_slices(metric_result(pages_of_run(folder, case)))
    official = case["expected"]["metric_result"]
    for noun, element, metric, measure in (
        ("text", "text_block", "Edit_dist", "text_edit"),
        ("table", "table", "TEDS", "table_teds"),
    ):
        wanted = {name: mean for name, mean in official[element]["group"].get(metric, {}).items() if mean is not None}
        shown = {
            f"{tag.removeprefix(noun + '.')}: {value}": estimates[measure].value
            for tag, values in slices.items()
            if tag.startswith(f"{noun}.")
            for value, estimates in values.items()
            if measure in estimates
        }
        assert shown == pytest.approx({name.removeprefix(f"{noun}_"): mean for name, mean in wanted.items()}, abs=1e-6)


def pages_of_config(case: dict[str, Any]) -> list[ScoredPage]:
    """The pages with their official samples; those that have none of any element count as not answered."""
    found = []
    for page in case["input"]["gt_pages"]:
        image = page["page_info"]["image_path"].rpartition("/")[2]
        samples = {
            element: [sample for sample in of_element if sample["img_id"] == image]
            for element, of_element in case["expected"]["samples"].items()
        }
        found.append(page_of_samples(image, page["page_info"]["page_attribute"], samples))
    return found


@pytest.mark.parametrize("case", CONFIGURED, ids=[case["id"] for case in CONFIGURED])
def test_figures_of_configured_runs_are_the_official_ones(case: dict[str, Any]) -> None:
    wanted = {
        element: ElementMetrics(metric=tuple(given["metric"]), group=tuple(given.get("group", ())))
        for element, given in case["input"].get("metrics", {}).items()
    }
    pages, expected = pages_of_config(case), case["expected"]
    assert differences(metric_result(pages, wanted or OFFICIAL_METRICS), expected["metric_result"]) == []
    samples = samples_by_element(pages)
    for element, edits in expected["per_page_edit"].items():
        assert differences(per_page_edit(samples[element]) or None, edits) == []


def test_the_headline_is_rounded_before_the_overall_is_taken() -> None:
    result = {
        "text_block": {"all": {"Edit_dist": {"ALL_page_avg": 0.12349}}},
        "display_formula": {"page": {"CDM": {"ALL": 0.8}}},
        "table": {"page": {"TEDS": {"ALL": 0.7}, "TEDS_structure_only": {"ALL": 0.75}}},
        "reading_order": {"all": {"Edit_dist": {"ALL_page_avg": 0.1}}},
    }
    row = headline_row(result)
    assert row["text_block_Edit_dist"] == 0.123
    assert row["overall"] == pytest.approx((87.7 + 80 + 70) / 3, abs=1e-12)


def test_without_cdm_there_is_no_overall() -> None:
    row = headline_row(metric_result([]))
    assert row["overall"] is None and row["text_block_Edit_dist"] is None
