"""OmniDocBench 1.6: every page and every run of the official evaluator's cases."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench import V1_6_BENCHMARK, as_read_from_its_file
from loupe.benchmarks.omnidocbench.aggregation import ElementMetrics, metric_result, per_page_edit, run_summary
from loupe.benchmarks.omnidocbench.figures import RECKONING_1_6 as RECKONING
from loupe.benchmarks.omnidocbench.figures import cdm_fields
from loupe.benchmarks.omnidocbench.official_files import score_run
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import PageMatch
from loupe.benchmarks.omnidocbench.rules import V1_6
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, answer_names, image_name, samples_by_element
from loupe.scoring.oracles import read_oracle
from loupe.types import Prediction, Sample, Scored
from tests.omnidocbench.official_samples import TOLERANCE, approximately, as_official
from tests.support.shared import cases

ORACLES = "oracles/omnidocbench_v16"
GAPS = cases(f"{ORACLES}/gaps.jsonl")
PAGES = cases(f"{ORACLES}/pages.jsonl")
#: Runs that end upstream, and those with its environment switches, which Loupe does not have.
RUNS = [
    case for case in cases(f"{ORACLES}/runs.jsonl") if "error" not in case["expected"] and not case["input"].get("env")
]
#: The metrics of the official runs: those of the default configuration without CDM.
METRICS = {
    "text_block": {"metric": ["Edit_dist"]},
    "display_formula": {"metric": ["Edit_dist"]},
    "table": {"metric": ["TEDS", "Edit_dist"]},
    "reading_order": {"metric": ["Edit_dist"]},
}


@cache
def ground_truth() -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = json.loads(read_oracle("omnidocbench_v16/gt.json"))
    return pages


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case["id"])
def test_a_page_has_the_official_samples(case: dict[str, Any]) -> None:
    assert_official(matched(ground_truth()[case["input"]["page"]], case), case["expected"])


@pytest.mark.parametrize(
    "case", [case for case in GAPS if "error" not in case["expected"]], ids=lambda case: case["id"]
)
def test_a_rare_case_has_the_official_samples(case: dict[str, Any]) -> None:
    match = matched(case["input"]["gt_page"], case)
    assert_official(match, case["expected"])
    assert match.facts.upstream_error == ""


@pytest.mark.parametrize("case", [case for case in GAPS if "error" in case["expected"]], ids=lambda case: case["id"])
def test_where_upstream_ends_the_page_is_scored_and_says_so(case: dict[str, Any]) -> None:
    match = matched(case["input"]["gt_page"], case)
    error = case["expected"]["error"].removeprefix("exit: ").partition(":")[0]
    assert match.facts.upstream_error == error


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["id"])
def test_figures_of_whole_runs_are_the_official_ones(case: dict[str, Any]) -> None:
    pages, metrics, expected = pages_of_run(case), metrics_of(case), case["expected"]
    result = metric_result(pages, metrics)
    official = {name: figures for name, figures in expected["metric_result"].items() if name != "match_debug"}
    assert result == numbers(official)
    summary = expected["run_summary"]
    summary["notebook_metric_summary"].pop("source", None)
    assert run_summary(pages, metrics, result) == numbers(summary)
    samples = samples_by_element(pages)
    for element, edits in expected["per_page_edit"].items():
        if element in metrics and "Edit_dist" in metrics[element].metric:
            assert per_page_edit(samples[element]) == numbers(edits or {})


def matched(page: dict[str, Any], case: dict[str, Any]) -> PageMatch:
    return match_page(page, as_read_from_its_file(case["input"]["pred"]), rules=V1_6)


def assert_official(match: PageMatch, expected: dict[str, Any]) -> None:
    ours = as_official(match, texts_elsewhere=True)
    for row, sample in zip(ours["display_formula"], match.display_formula, strict=True):
        del row["gt_sha256_16"], row["pred_sha256_16"]  # the cases have formulas in full
        fields = cdm_fields(sample.gt, sample.pred)
        row |= {"gt_cdm": fields.gt_cdm} if fields.gt_cdm else {}
        row |= {"pred_cdm_alt": fields.pred_cdm_alt} if fields.pred_cdm_alt else {}
    for element, samples in ours.items():
        assert len(samples) == len(expected[element]), element
        for row, sample in zip(samples, expected[element], strict=True):
            assert row == approximately(sample)


@cache
def scored(page: str, answer: str | None) -> Scored:
    """A page's scores: runs share most pages and answers."""
    prediction = Prediction(outcome="missing") if answer is None else Prediction(text=answer)
    found = V1_6_BENCHMARK.score(Sample(id="page", truth=json.loads(page)), prediction)
    assert isinstance(found, Scored)
    return found


def pages_of_run(case: dict[str, Any]) -> list[ScoredPage]:
    given = case["input"]
    pages = [ground_truth()[page] if isinstance(page, int) else page for page in given["gt_pages"]]
    wanted = given.get("dataset", {}).get("filter") or {}
    pages = [page for page in pages if wanted.items() <= page["page_info"]["page_attribute"].items()]
    files = given.get("files") or {}
    if "cases" in given:
        by_id = {each["id"]: each["input"]["pred"] for each in PAGES}
        files = {answer_names(name.partition("/")[2])[0]: by_id[name] for name in given["cases"]}
    answers = {}
    for page in pages:
        image = image_name(page["page_info"]["image_path"])
        if name := next((name for name in answer_names(image) if name in files), ""):
            answers[image] = files[name]
    return score_run(
        {"pages": pages, "answers": answers},
        lambda sample, prediction: scored(json.dumps(sample.truth), None if prediction.failed else prediction.text),
        RECKONING,
    )


def metrics_of(case: dict[str, Any]) -> dict[str, ElementMetrics]:
    configured = case["input"].get("metrics") or METRICS
    return {
        element: ElementMetrics(
            metric=tuple(wanted["metric"]), group=tuple(wanted.get("group") or ()), group_structure=True
        )
        for element, wanted in configured.items()
    }


def numbers(value: Any) -> Any:
    """Figures to be held against ours: floats as close as the tolerance, and NaN equal to itself."""
    if isinstance(value, dict):
        return {key: numbers(part) for key, part in value.items()}
    return pytest.approx(value, abs=TOLERANCE, rel=0, nan_ok=True) if isinstance(value, float) else value
