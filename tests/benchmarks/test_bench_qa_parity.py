"""DocVQA, InfoVQA, ChartQA and TextVQA against the official programs: every case, every word, and whole runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.metrics import evalai_text, exact_match, vqa_text
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Sample
from tests.support.shared import cases

BENCHMARKS = {"anls": "docvqa", "chartqa": "chartqa", "textvqa": "textvqa"}
ALL = cases("oracles/qa/cases.jsonl")
RUNS = cases("oracles/qa/runs.jsonl")
WORDS = cases("oracles/qa/words.jsonl")
#: Where the official program ends its run, a question earns nothing here.
NO_REFERENCE = "qa-311-anls-0126"
#: Names of the whole of a run and of its parts.
OVERALL = {"Overall", "anls", "relaxed_overall", "exact_match"}


def sample(ident: str, answers: str | list[str], variant: str, **tags: str) -> Sample:
    scoring = {} if variant == "vlmevalkit" else {"variant": variant}
    return Sample(
        id=ident, truth={"question": "?", "answers": answers}, images=(Path("x"),), tags=tags, scoring=scoring
    )


def earned(name: str, given: Sample, text: str) -> float:
    benchmark = get_benchmark(name)
    scores = benchmark.score(given, Prediction(text=text))
    assert isinstance(scores, list) and scores[0].measure == benchmark.headline_measure
    return scores[0].counts[0]


@pytest.mark.parametrize("case", [case for case in ALL if case["kind"] in BENCHMARKS], ids=lambda case: case["id"])
def test_points_are_official(case: dict[str, Any]) -> None:
    given, name = case["input"], BENCHMARKS[case["kind"]]
    answers = given.get("answers", given.get("answer"))
    for variant in ("vlmevalkit", "lmms_eval", "evalscope"):
        if variant not in case["expected"]:
            continue
        expected = case["expected"][variant]
        ours = earned(name, sample("s", answers, variant), given["prediction"])
        if isinstance(expected, str):
            assert case["id"] == NO_REFERENCE
            assert ours == 0.0
        else:
            assert ours == pytest.approx(expected, abs=1e-12)
            if name == "docvqa":
                assert earned("infovqa", sample("s", answers, variant), given["prediction"]) == ours


@pytest.mark.parametrize("case", [case for case in ALL if case["kind"] == "textvqa"], ids=lambda case: case["id"])
def test_answers_are_processed_as_officially(case: dict[str, Any]) -> None:
    text = case["input"]["prediction"]
    assert vqa_text(text) == case["expected"]["vlmevalkit_pred"]
    assert evalai_text(text.strip()) == case["expected"]["lmms_eval_pred"]


@pytest.mark.parametrize("process", [vqa_text, evalai_text])
def test_words_are_processed_as_officially(process: Callable[[str], str]) -> None:
    harness = "vlmevalkit" if process is vqa_text else "lmms_eval"
    assert {case["word"]: process(case["word"]) for case in WORDS} == {case["word"]: case[harness] for case in WORDS}


def test_exact_match_is_that_of_ocr_vqa() -> None:
    found = [case for case in ALL if case["kind"] == "ocrvqa"]
    assert len(found) == 30
    for case in found:
        given = case["input"]
        assert exact_match(given["prediction"], [given["answer"]]) == case["expected"]["vlmevalkit"], case["id"]


def test_no_case_is_left_out() -> None:
    assert {kind: sum(case["kind"] == kind for case in ALL) for kind in (*BENCHMARKS, "ocrvqa")} == {
        "anls": 152,
        "chartqa": 192,
        "textvqa": 158,
        "ocrvqa": 30,
    }
    assert len(ALL) == 532 and len(WORDS) == 145 and len(RUNS) == 13


@pytest.mark.parametrize(
    ("case", "variant"),
    [(case, variant) for case in RUNS if "ocrvqa" not in case["id"] for variant in case["expected"]],
    ids=lambda value: value if isinstance(value, str) else value["id"],
)
def test_means_of_a_run_are_official(case: dict[str, Any], variant: str) -> None:
    expected = case["expected"][variant]
    name = case["dataset"].partition("_")[0].lower()
    benchmark = get_benchmark(name)
    rows = []
    for index, item in enumerate(case["input"]):
        part = item.get("split") or item.get("category")
        given = sample(str(index), item["answer"], variant, **({"part": part} if part else {}))
        rows.append(score_sample(benchmark, given, Prediction(text=item["prediction"]), ()))
    origin = Origin(benchmark=name, engine="e", signature="s", total=len(rows))
    result = summarise(benchmark, rows, origin, draws=20)
    headline, scale = benchmark.headline_measure, 100.0 if variant == "vlmevalkit" else 1.0
    parts = {tag: each[headline].value for tag, each in result.slices.get("part", {}).items()}
    for label, value in expected.items():
        place = {"relaxed_human_split": "test_human", "relaxed_augmented_split": "test_augmented"}.get(label, label)
        place = "_".join(reversed(place.split("_"))) if place.endswith("_test") else place
        ours = result.measures[headline].value if label in OVERALL else parts[place]
        assert ours is not None and ours * scale == pytest.approx(value, abs=1e-9), label
