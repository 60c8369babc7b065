"""Table images against IBM's evaluator: 57 cases on real tables, and IBM's own 20 sample predictions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.shared.table_images import verify_case
from loupe.types import Prediction
from tests.support.shared import shared, shared_cases, shared_parameters

BENCHMARK = get_benchmark("pubtabnet")
DATA = "data/pubtabnet"
TOLERANCE = 1e-9


@pytest.mark.parametrize("case", shared_parameters("oracles/teds/pubtabnet_cases.jsonl"))
def test_numbers_are_those_of_the_official_evaluator(case: dict[str, Any]) -> None:
    checked = verify_case(case)
    assert len(checked) == 2
    for ours, official in checked:
        assert ours == pytest.approx(official, abs=TOLERANCE, rel=0)


def test_the_sample_predictions_of_ibm_score_as_ibm_says() -> None:
    official = json.loads(shared("oracles/teds/ibm_sample_scores.json").read_text(encoding="utf-8"))
    answers = json.loads(shared(f"{DATA}/sample_pred.json").read_text(encoding="utf-8"))
    samples = list(BENCHMARK.load(shared(f"{DATA}/sample_gt.json")))
    assert len(samples) == 20
    total = 0.0
    for sample in samples:
        scores = BENCHMARK.score(sample, Prediction(sample=sample.id, text=answers.get(sample.id, "")))
        found = {score.measure: score.counts[0] for score in scores}
        assert found["teds_official"] == pytest.approx(official[sample.id]["teds"], abs=TOLERANCE, rel=0)
        assert found["teds_struct_official"] == pytest.approx(official[sample.id]["teds_struct"], abs=TOLERANCE, rel=0)
        total += found["teds_official"]
    assert total / 20 == pytest.approx(0.899678114795296, abs=TOLERANCE)


def test_tokens_of_the_real_examples_become_their_html_and_score_one_against_themselves() -> None:
    expected = {case["id"]: case["gt_html"] for case in shared_cases(f"{DATA}/examples_html.jsonl")}
    samples = {sample.id: sample for sample in BENCHMARK.load(shared(DATA), split="train")}
    assert {ident: f"<html><body>{sample.truth}</body></html>" for ident, sample in samples.items()} == expected
    assert all(sample.images[0].is_file() for sample in samples.values())
    for sample in samples.values():
        scores = BENCHMARK.score(sample, Prediction(text=sample.truth))
        assert [score.counts for score in scores] == [(1.0, 1.0)] * 4
