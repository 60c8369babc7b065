"""DP-Bench against both official evaluators and opendataloader-bench: every case to 1e-9, also on 200 real pages."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.dp_bench import verify_case
from loupe.benchmarks.dp_bench.opendataloader import compare_pages
from loupe.benchmarks.shared.table_answers.spellings import convert_pipe_tables
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result
from tests.support.shared import SHARED, cases, shared, shared_cases

BENCHMARK = get_benchmark("dp_bench")
DATA = "data/dp_bench"
TOLERANCE = 1e-9
PAGES = cases("oracles/nid/opendataloader_markdown.jsonl")
TEXTS = cases("oracles/nid/dpbench_nid.jsonl")
TABLES = [case for file in ("tables", "revisions", "raises") for case in cases(f"oracles/dp_bench_tables/{file}.jsonl")]


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


def check(case: dict[str, Any]) -> None:
    checked = verify_case(case)
    assert checked
    for ours, official in checked:
        assert ours == pytest.approx(official, abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("case", TEXTS + PAGES, ids=name)
def test_numbers_are_those_of_the_official_evaluators(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("case", TABLES, ids=name)
def test_tables_score_as_in_the_evaluator_of_the_leaderboard(case: dict[str, Any]) -> None:
    check({"input": case["input"], "expected": case["expected_6c2a241"]})


@pytest.mark.parametrize("case", TABLES, ids=name)
def test_tables_score_as_in_the_first_evaluator_under_variant_v1(case: dict[str, Any]) -> None:
    check({"input": {**case["input"], "variant": "v1"}, "expected": case["expected"]})


@pytest.mark.parametrize("case", PAGES, ids=name)
def test_pipe_tables_become_the_html_of_opendataloader(case: dict[str, Any]) -> None:
    for side in ("gt", "pred"):
        assert convert_pipe_tables(case["input"][f"{side}_markdown"]) == case["expected"][f"{side}_converted"]


@pytest.mark.parametrize("engine", ["docling", "markitdown"])
def test_real_pages_of_an_engine_score_as_in_opendataloader(engine: str) -> None:
    real = shared_cases("oracles/nid/opendataloader_real.jsonl")
    pages = [case for case in real if case["id"].startswith(f"odlreal-{engine}")]
    assert len(pages) == 200
    for case in pages:
        texts = [(SHARED.parent / case["input"][key]).read_text(encoding="utf-8") for key in ("pred_file", "gt_file")]
        found = dict(zip(("nid", "nid_s", "teds", "teds_s"), compare_pages(*texts)[:4], strict=True))
        for measure, official in case["expected"].items():
            assert found[measure] == pytest.approx(official, abs=TOLERANCE, rel=0), (case["id"], measure)


def result_of(engine: str, variant: str) -> Result:
    rows = []
    for sample in BENCHMARK.load(shared(DATA), variant=variant):
        text = shared(f"{DATA}/pred_{engine}/{sample.id.removesuffix('.pdf')}.md").read_text(encoding="utf-8")
        rows.append(score_sample(BENCHMARK, sample, Prediction(sample=sample.id, text=text), ()))
    assert not any(row.error for row in rows)
    return summarise(
        BENCHMARK, rows, Origin(benchmark="dp_bench", engine=engine, signature="", total=len(rows)), draws=20
    )


def test_means_of_docling_are_those_that_opendataloader_has_published() -> None:
    measures = result_of("docling", "opendataloader").measures
    assert measures["nid"].value == pytest.approx(0.8994733646797808, abs=TOLERANCE)
    assert measures["nid_s"].value == pytest.approx(0.8575655190680465, abs=TOLERANCE)
    assert (measures["nid"].n, measures["teds"].n) == (200, 42)


def test_official_rules_count_one_table_per_page_and_tolerant_ones_all() -> None:
    assert result_of("docling", "official").measures["teds"].n == 42
    assert result_of("docling", "tolerant").measures["teds"].n == 55
