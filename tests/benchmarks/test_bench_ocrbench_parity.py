"""OCRBench against the official programs: the points of every case, and whole runs with their categories and sums."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.ocrbench import verify_case
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result, SampleScores
from tests.support.shared import cases, shared, shared_cases, shared_parameters

BENCHMARK = get_benchmark("ocrbench")
TRUTH = "data/ocrbench/OCRBench.json"
#: A JSON null makes the official script crash; here it cannot occur, as a prediction is a text.
CRASHES = {"ocrbench-se004"}
CASES = [case for case in cases("oracles/ocrbench/cases.jsonl") if case["id"] not in CRASHES]
#: Their answers are made of those of OCRBench, so they are not in the repository.
RUNS = "oracles/ocrbench/runs.jsonl"


def result_of(case: dict[str, Any]) -> tuple[list[SampleScores], Result]:
    samples = list(BENCHMARK.load(shared(TRUTH)))[: case["input"]["limit"]]
    answers = zip(samples, case["input"]["predict_by_index"], strict=True)
    rows = [score_sample(BENCHMARK, each, Prediction(text=text), ()) for each, text in answers if text is not None]
    origin = Origin(benchmark="ocrbench", engine="e", signature="s", total=len(samples))
    return rows, summarise(BENCHMARK, rows, origin, draws=20)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_points_are_those_of_the_three_official_scorers(case: dict[str, Any]) -> None:
    checked = verify_case(case)
    assert len(checked) == 3
    assert [ours for ours, _ in checked] == [expected for _, expected in checked]


def test_only_the_listed_case_is_left_out() -> None:
    assert len(CASES) == len(cases("oracles/ocrbench/cases.jsonl")) - 1


@pytest.mark.parametrize("case", shared_parameters(RUNS))
def test_points_of_a_whole_run_are_official_one_by_one(case: dict[str, Any]) -> None:
    rows, _ = result_of(case)
    found = {row.sample: row.scores[0].counts[0] for row in rows}
    assert [found.get(f"{index:04d}") for index in range(case["input"]["limit"])] == case["expected"]["result_by_index"]


@pytest.mark.parametrize("case", shared_parameters(RUNS)[:2])
def test_categories_and_the_final_score_of_a_run_are_official(case: dict[str, Any]) -> None:
    assert case["input"]["limit"] == 1000
    _, result = result_of(case)
    assert "error" not in case["expected"]["stdout"]
    categories = result.slices["category"]
    assert {name: value["score"].value for name, value in categories.items()} == case["expected"]["category_scores"]
    final = int(case["expected"]["stdout"].rsplit("Final Score(Total 1000): ")[1])
    assert result.measures["score"].value == final
    recognition = int(case["expected"]["stdout"].split("Text Recognition(Total 300):")[1].split("\n")[0])
    assert result.slices["section"]["Text Recognition"]["score"].value == recognition


def test_a_part_of_the_questions_is_counted_as_far_as_it_goes_where_the_official_script_crashes() -> None:
    case = shared_cases(RUNS)[2]
    _, result = result_of(case)
    assert "ZeroDivisionError" in case["expected"]["stdout"]
    assert result.measures["score"].value == sum(case["expected"]["result_by_index"])
    assert result.measures["score"].n == 400


def test_the_real_file_has_a_thousand_questions_with_ids_of_their_own() -> None:
    samples = list(BENCHMARK.load(shared(TRUTH)))
    assert len({sample.id for sample in samples}) == len(samples) == 1000
    assert len({sample.tags["category"] for sample in samples}) == 10
    assert Counter(sample.tags["section"] for sample in samples)["Text Recognition"] == 300
