"""OCRBench v2 against the official program: every case, the long ones, and whole runs with their categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.ocrbench_v2 import _is_too_long_for_nltk, _Item, _sample, verify_case
from loupe.benchmarks.ocrbench_v2.types_of_questions import CATEGORIES, Question, points
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction
from tests.support.shared import cases

BENCHMARK = get_benchmark("ocrbench_v2")
ALL = cases("oracles/ocrbench_v2/cases.jsonl")
#: An answer is always a text in Loupe: no null, number or list.
TEXTS = [case for case in ALL if isinstance(case["input"].get("predict"), str)]
LONG = {case["case"]: case["expected"]["score"] for case in cases("oracles/ocrbench_v2/long.jsonl")}
RUNS = [case for case in cases("oracles/ocrbench_v2/runs.jsonl") if "scores" in case["expected"]]


def question(given: dict[str, Any]) -> Question:
    return Question(**{name: given.get(name) for name in Question._fields})


@pytest.mark.parametrize("case", [c for c in TEXTS if c["id"] not in LONG], ids=lambda case: case["id"])
def test_points_are_official(case: dict[str, Any]) -> None:
    pairs = verify_case(case)
    assert pairs
    for ours, official in pairs:
        assert ours == pytest.approx(official, abs=1e-9)


def test_what_is_left_out_is_counted() -> None:
    assert (len(ALL), len(TEXTS), len(LONG)) == (761, 712, 8)
    assert {case["id"] for case in TEXTS if _is_too_long_for_nltk(case)} == set(LONG)


@pytest.mark.parametrize("ident", sorted(LONG))
def test_long_texts_are_scored_as_without_the_limit_of_nltk(ident: str) -> None:
    given = next(case["input"] for case in ALL if case["id"] == ident)
    assert points(question(given), given["predict"]).value == pytest.approx(LONG[ident], abs=1e-9)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["id"])
def test_categories_of_a_run_are_official(case: dict[str, Any]) -> None:
    items = [item for item in case["input"] if isinstance(item.get("predict"), str)]
    if len(items) != len(case["input"]) or not items:
        pytest.skip("a run without items, or with answers that are no text")
    rows = [
        score_sample(
            BENCHMARK,
            _sample(str(index), Path("x"), _Item(**{k: item[k] for k in _Item.__struct_fields__ if k in item})),
            Prediction(text=item["predict"]),
            (),
        )
        for index, item in enumerate(items)
    ]
    result = summarise(
        BENCHMARK, rows, Origin(benchmark="ocrbench_v2", engine="e", signature="s", total=len(rows)), draws=20
    )
    language, seen = "", 0
    for line in case["expected"]["get_score"]:
        name, _, rest = line.partition(":")
        if line.endswith("Scores:"):
            language = line.split()[0].lower()
        elif name in CATEGORIES["en"]:
            assert f"{result.measures[f'{language}_{name}'].value:.3f}" == rest.split()[0]
            seen += 1
        elif "verall" in name:
            assert f"{result.measures[language].value:.3f}" == rest.split()[0]
            seen += 1
    assert seen
