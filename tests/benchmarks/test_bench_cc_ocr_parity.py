"""CC-OCR against the official program: every subset, and whole runs with the means of their subsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.cc_ocr import TRACKS, is_too_long_for_nltk, verify_case
from loupe.benchmarks.cc_ocr.data import sample_of
from loupe.benchmarks.cc_ocr.tracks import parsed, read_record
from loupe.errors import DatasetError
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result, Sample
from tests.support.shared import cases

BENCHMARK = get_benchmark("cc_ocr")
ALL = cases("oracles/cc_ocr/cases.jsonl")
RUNS = cases("oracles/cc_ocr/runs.jsonl")
#: With NLTK 3.10 the official run ends at these texts; without its limit they would earn this.
LONG = {"ccocr-77-0196": 2 / 2002, "ccocr-77-0266": 2 / 2002, "ccocr-77-0284": 2 / 2002}
#: Our measure of a track → the official name of the column.
TABLES = {
    "multi_scene_ocr": "macro_f1_score",
    "multi_lan_ocr": "macro_f1_score",
    "multi_scene_ocr_micro": "mirco_f1_score",
    "multi_lan_ocr_micro": "mirco_f1_score",
    "doc_parsing": "score",
    "kie": "f1_score",
    "kie_tree": "acc",
}


@pytest.mark.parametrize("case", [case for case in ALL if case["id"] not in LONG], ids=lambda case: case["id"])
def test_a_subset_has_the_official_scores(case: dict[str, Any]) -> None:
    pairs = verify_case(case)
    assert len(pairs) == (1 if "error" in case["expected"] else len(case["expected"]["summary"]) - 1)
    for ours, official in pairs:
        assert ours == pytest.approx(official, abs=1e-9)


@pytest.mark.parametrize("case", [case for case in ALL if case["group"] == "kie"], ids=lambda case: case["id"])
def test_the_same_records_are_rejected(case: dict[str, Any]) -> None:
    rejected = []
    for name in case["gt"]:
        answer = case["responses"].get(name)
        try:
            read_record("" if answer is None else answer)
        except ValueError:
            rejected += [name] if name in case["responses"] else []
    assert rejected == case["expected"]["post_errors"]


def test_what_is_left_out_is_counted() -> None:
    assert (len(ALL), len(RUNS)) == (382, 6)
    assert {case["id"] for case in ALL if is_too_long_for_nltk(case)} == set(LONG)
    for case in ALL:
        if case["id"] in LONG:
            ((name, label),) = case["gt"].items()
            found = parsed(case["responses"][name], label, case["op"])
            assert found == pytest.approx(2 / len(label), abs=1e-12) and len(label) > 2_000


def run_of(case: dict[str, Any]) -> Result:
    rows = []
    for subset in case["input"]:
        if subset["responses"] is None or subset["index"].get("release") is False:
            continue
        index = subset["index"]
        for name, label in subset["gt"].items():
            answer = subset["responses"].get(name)
            sample = sample_of(Path(), name, "", label, (index["group"], index["dataset"], index["op"]))
            given = Prediction(
                text="" if answer is None else str(answer), outcome="missing" if answer is None else "ok"
            )
            rows.append(score_sample(BENCHMARK, sample, given, ()))
    origin = Origin(benchmark="cc_ocr", engine="e", signature="s", total=len(rows))
    return summarise(BENCHMARK, rows, origin, draws=20)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["id"])
def test_means_over_subsets_are_those_of_the_official_tables(case: dict[str, Any]) -> None:
    result, track = run_of(case), case["input"][0]["index"]["group"]
    tables = {
        head[0][len("exp_name(") : -1]: dict(zip(head, row, strict=True))
        for head, row in case["expected"]["summary_tables"]
    }
    compared = 0
    for name, official in TABLES.items():
        if not name.startswith(track):
            continue
        table, measure = tables[official], result.measures[name]
        assert measure.value is not None and measure.low is not None
        known = [100 * summary[official] for summary in case["expected"]["summaries"].values()]
        assert 100 * measure.value == pytest.approx(sum(known) / len(known), abs=1e-6)
        if table["summary"] != "-":  # a subset is missing there; here the mean is that of those that were read
            assert f"{100 * measure.value:.2f}".rstrip("0").rstrip(".") == table["summary"]
        compared += 1
    assert compared >= 1
    assert result.measures["total"].value == result.measures[track].value


def test_slices_by_subset_are_the_official_scores_of_the_subsets() -> None:
    result = run_of(RUNS[0])
    for subset, summary in RUNS[0]["expected"]["summaries"].items():
        found = result.slices["subset"][subset]
        assert found["macro_f1"].value == pytest.approx(summary["macro_f1_score"], abs=1e-9)
        assert found["micro_f1"].value == pytest.approx(summary["mirco_f1_score"], abs=1e-9)


def write_repository(root: Path) -> None:
    from tests.data.test_data_layouts import picture

    folder = root / "data/kie/POIE"
    (folder / "images").mkdir(parents=True)
    (folder / "images/a.jpg").write_bytes(picture(50, "JPEG"))
    (folder / "label.json").write_text(json.dumps({"a": {"x": "1"}}))
    (folder / "qa.jsonl").write_text(json.dumps({"url": "data/kie/POIE/images/a.jpg", "prompt": "Fill in."}) + "\n")
    index = [{"dataset": "POIE", "base_dir": "data/kie/POIE", "group": "kie", "op": "c", "num": 1}]
    (root / "index").mkdir()
    (root / "index/kie.json").write_text(json.dumps(index))


def loaded(root: Path, **options: str) -> list[Sample]:
    return list(BENCHMARK.load(root, **options))


def test_the_repository_of_the_authors_is_read(tmp_path: Path) -> None:
    write_repository(tmp_path)
    (sample,) = loaded(tmp_path)
    assert (sample.id, sample.prompt, sample.truth) == ("kie/POIE/a", "Fill in.", {"x": "1"})
    assert sample.images == (tmp_path / "data/kie/POIE/images/a.jpg",)
    assert loaded(tmp_path, track="kie") == [sample] and loaded(tmp_path, track="doc_parsing") == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("index/kie.json", '[{"dataset": "x", "base_dir": "../..", "group": "kie", "op": "c"}]', "leaves the folder"),
        ("index/kie.json", "{", "not as CC-OCR publishes it"),
        ("data/kie/POIE/label.json", "{}", "label.json has no 'a'"),
        ("data/kie/POIE/label.json", '{"a": "{"}', "the label is no JSON"),
        ("data/kie/POIE/qa.jsonl", '{"url": 1}\n', "no object with url and prompt"),
    ],
)
def test_what_is_no_subset_is_named(tmp_path: Path, file: str, content: str, said: str) -> None:
    write_repository(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(DatasetError, match=said):
        loaded(tmp_path)


def test_a_failed_answer_earns_nothing_in_any_track() -> None:
    for track, label in zip(TRACKS, ("a", "a", "", {"a": "b"}), strict=True):
        sample = sample_of(Path(), "x", "", label, (track, "French", "doc"))
        scores = BENCHMARK.score(sample, Prediction(text="a", outcome="timeout"))
        assert isinstance(scores, list)
        earned = {each.measure: each.counts[0] for each in scores if each.measure not in TABLES}
        assert set(earned.values()) == {0.0}
