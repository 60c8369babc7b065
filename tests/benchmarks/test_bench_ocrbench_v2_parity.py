"""OCRBench v2 against the official program: every case, the long ones, and whole runs with their categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.ocrbench_v2 import _is_too_long_for_nltk, _Item, _sample, verify_case
from loupe.benchmarks.ocrbench_v2.comparing import dictionary
from loupe.benchmarks.ocrbench_v2.types_of_questions import (
    CATEGORIES,
    Question,
    _markdown_rows,
    outline_similarity,
    points,
)
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Sample
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


@pytest.mark.parametrize(
    ("prediction", "reference", "official"),
    [
        ("# A\n  ### B", "# A\n### B", 0.5),
        ("# A\n ### B", "# A\n### B", 1.0),
        ("{  a  }\n\\begin  {x}", "{a}\n", 0.75),
        ("x  *  *  y\n# B", "x\n  # B", 0.5),
        ("\xa0### T\n", "# T\n", 0.75),
    ],
)
def test_an_outline_loses_one_character_of_white_space_to_each_rule(
    prediction: str, reference: str, official: float
) -> None:
    assert outline_similarity(prediction, reference) == pytest.approx(official, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "official"),
    [
        ("'date: 2020'", {}),
        ("{1: 'x'}", {}),
        ('{"a": [1, "x"]},', {}),
        ("True#c{'a': 1}", {}),
        ("```json\n : x\n```", {"": "x"}),
        ("a: b", {"a": "b"}),
    ],
)
def test_a_literal_that_is_no_dictionary_of_texts_has_no_fields(text: str, official: dict[str, str]) -> None:
    assert dictionary(text) == official


def test_only_a_cell_of_blanks_is_a_blank() -> None:
    official = "<table><tr><td>a</td><td></td><td> </td><td></td></tr></table>"
    assert _markdown_rows("| a |\u00a0|  |\t|\n|-|\n") == official


@pytest.mark.parametrize("ident", sorted(LONG))
def test_long_texts_are_scored_as_without_the_limit_of_nltk(ident: str) -> None:
    given = next(case["input"] for case in ALL if case["id"] == ident)
    assert points(question(given), given["predict"]).value == pytest.approx(LONG[ident], abs=1e-9)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["id"])
def test_categories_of_a_run_are_official(case: dict[str, Any]) -> None:
    # A null or a number as answer is a text here, which earns the same.
    items = [item | {"predict": "" if item["predict"] is None else str(item["predict"])} for item in case["input"]]
    rows = [
        score_sample(BENCHMARK, sample(str(index), item), Prediction(text=item["predict"]), ())
        for index, item in enumerate(items)
    ]
    earned = [next(each.counts[0] for each in row.scores if each.measure == "points") for row in rows]
    assert earned == pytest.approx(case["expected"]["scores"], abs=1e-9)
    if not rows:
        return
    origin = Origin(benchmark="ocrbench_v2", engine="e", signature="s", total=len(rows))
    found = {
        name: f"{value.value:.3f}"
        for name, value in summarise(BENCHMARK, rows, origin, draws=20).measures.items()
        if value.value is not None
    }
    official = published(case["expected"]["get_score"])
    assert official
    assert {name: found[name] for name in official} == official


def sample(ident: str, item: dict[str, Any]) -> Sample:
    return _sample(ident, Path("x"), _Item(**{name: item[name] for name in _Item.__struct_fields__ if name in item}))


def published(lines: list[str]) -> dict[str, str]:
    """The lines that the official program prints, by the name of our measure."""
    found, language = {}, ""
    for line in lines:
        name, _, value = line.partition(": ")
        if line in ("English Scores:", "Chinese Scores:"):
            language = line.split()[0].lower()
        elif name.endswith("Overall Score"):
            found[name.split()[0].lower()] = value
        elif name in CATEGORIES["en"]:
            found[f"{language}_{name}"] = value.split()[0]
    return found
