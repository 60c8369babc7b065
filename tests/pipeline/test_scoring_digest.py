"""What makes a stored score stale, and what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.benchmarks.registry import get_benchmark
from loupe.scoring.digest import _code_digest, score_digest
from loupe.types import Prediction, Sample

TOY = """
from loupe.types import Benchmark, Measure
benchmark = Benchmark(
    title="toy", version="1", task="text", measures=(Measure(name="m"),), load=lambda root: (), score=lambda s, p: []
)
"""
SAMPLE = {"id": "a", "truth": {"x": [1, 2.5, None]}, "prompt": "p", "tags": {"t": "1"}, "group": "g"}
PREDICTION = Prediction(sample="a", text="text")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.py"
    path.write_text(TOY)
    return path


def digest(toy: Path, adapters: tuple[str, ...] = (), prediction: Prediction = PREDICTION, **changes: Any) -> str:
    return score_digest(get_benchmark(str(toy)), Sample(**(SAMPLE | changes)), prediction, adapters)


@pytest.mark.parametrize(
    "changes",
    [
        {"truth": {"x": [1, 2.5, 0]}},
        {"prompt": "q"},
        {"task": "table"},
        {"group": ""},
        {"tags": {}},
        {"text": "t"},
        {"scoring": {"cdm": "off"}},
    ],
    ids=str,
)
def test_another_sample_has_another_digest(toy: Path, changes: dict[str, Any]) -> None:
    assert digest(toy, **changes) != digest(toy)


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "texT"},
        {"joined": True},
        {"outcome": "truncated"},
        {"finish_reason": "length"},
        {"output_tokens": 3},
        {"error": "x"},
    ],
    ids=str,
)
def test_another_answer_has_another_digest(toy: Path, changes: dict[str, Any]) -> None:
    assert digest(toy, prediction=msgspec.structs.replace(PREDICTION, **changes)) != digest(toy)


@pytest.mark.parametrize("changes", [{"seconds": 9.0}, {"attempt": 2}, {"response": {"id": "x"}}], ids=str)
def test_what_no_scorer_sees_changes_nothing(toy: Path, changes: dict[str, Any]) -> None:
    assert digest(toy, prediction=msgspec.structs.replace(PREDICTION, **changes)) == digest(toy)


def test_adapters_count_as_they_run(toy: Path) -> None:
    assert digest(toy, ("strip",)) != digest(toy)
    assert digest(toy, ("strip", "think")) == digest(toy, ("think", "strip", "strip"))


def test_an_edited_scorer_makes_scores_stale(toy: Path) -> None:
    before = digest(toy)
    toy.write_text(TOY.replace("[]", "None or []"))
    _code_digest.cache_clear()
    assert digest(toy) != before


@pytest.mark.parametrize(
    ("ident", "named"),
    [
        ("pubtabnet", {"lxml", "libxml2", "beautifulsoup4"}),
        ("teds_test", {"lxml", "libxml2", "beautifulsoup4"}),
        ("dp_bench", {"lxml", "libxml2", "beautifulsoup4"}),
        ("omnidocbench", {"CDM", "lxml", "libxml2", "beautifulsoup4", "pylatexenc"}),
        ("nanonets_kie", {"json_repair"}),
        ("handwritten_forms", {"json_repair"}),
    ],
)
def test_parsers_and_dictionaries_are_named_with_their_release(ident: str, named: set[str]) -> None:
    tools = get_benchmark(ident).tools
    assert tools is not None and tools().keys() == named
    assert all(release or "CDM" in name for name, release in tools().items())


def test_another_release_of_a_tool_makes_scores_stale(toy: Path) -> None:
    one, other = (
        replace(get_benchmark(str(toy)), tools=lambda release=release: {"lxml": release}) for release in ("5", "6")
    )
    assert score_digest(one, Sample(**SAMPLE), PREDICTION, ()) != score_digest(other, Sample(**SAMPLE), PREDICTION, ())


def test_parts_cannot_run_into_each_other(toy: Path) -> None:
    assert digest(toy, prompt="ab", text="c") != digest(toy, prompt="a", text="bc")


@pytest.mark.parametrize("truth", ["\ud800", {1, 2, 3}, Path("x"), 1 << 80, float("nan")], ids=repr)
def test_any_truth_has_a_stable_digest(toy: Path, truth: Any) -> None:
    assert digest(toy, truth=truth) == digest(toy, truth=truth)
