"""Runs of very many samples: what stands in for lists of objects gives the same, and takes little memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.registry import load_profile
from loupe.files.folder import Folder
from loupe.files.json_lines import replacing_lines
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, answer_files, infer, stages
from loupe.pipeline.answer_files import StoredAnswers
from loupe.pipeline.existing_answers import match_answers
from loupe.runs.places import Place, Places
from loupe.runs.stored_records import StoredRecords
from loupe.stats.analysis import Analysis
from loupe.stats.clusters import ScoreTable, sort_into_clusters
from loupe.stats.estimates import estimate, estimate_clustered
from loupe.stats.scored_run import ScoredRun
from loupe.types import Measure, Prediction, SampleScores, Score
from tests.support.command_line import make_folder

PLACES = st.builds(
    Place, st.integers(0, 2**40), st.integers(0, 2**31), st.sampled_from(["ok", "error"]), st.integers(0, 3)
)
SCORES = st.builds(
    Score,
    measure=st.sampled_from(["cer", "wer"]),
    counts=st.tuples(st.integers(0, 9).map(float), st.integers(1, 9).map(float)),
)
ROWS = st.lists(st.tuples(st.sampled_from("abcdefg"), SCORES), max_size=30)
ANALYSIS = Analysis(
    [Measure(name="cer", higher_is_better=False), Measure(name="wer", higher_is_better=False)], draws=50
)


@given(st.lists(st.tuples(st.sampled_from("abcd"), PLACES)))
def test_places_are_those_of_a_dictionary(puts: list[tuple[str, Place]]) -> None:
    places = Places()
    for ident, place in puts:
        places.put(ident, place)
    assert list(places.items()) == list(dict(puts).items()) and len(places) == len(dict(puts))


@given(st.lists(st.tuples(st.sampled_from("abcd"), PLACES)), st.lists(st.tuples(st.sampled_from("abcd"), PLACES)))
def test_a_copy_of_places_changes_alone(before: list[tuple[str, Place]], after: list[tuple[str, Place]]) -> None:
    places = Places()
    for ident, place in before:
        places.put(ident, place)
    copy = places.copy()
    for ident, place in after:
        copy.put(ident, place)
    assert (dict(places), dict(copy)) == (dict(before), dict(before) | dict(after))


def test_places_take_little_more_than_their_ids() -> None:
    idents = [f"page-{number:07}" for number in range(20_000)]
    tracemalloc.start()
    places = Places()
    for number, ident in enumerate(idents):
        places.put(ident, Place(500 * number, 500, "ok"))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(idents) < 200


@given(ROWS, st.sets(st.integers(0, 29)))
def test_a_slice_of_a_table_is_estimated_like_its_rows_alone(rows: list[tuple[str, Score]], chosen: set[int]) -> None:
    from array import array

    table, places = ScoreTable(), dict[str, "array[int]"]()
    for number, (label, score) in enumerate(rows):
        place = table.add(label, score)
        if number in chosen:
            places.setdefault(score.measure, array("I")).append(place)
    alone = estimate(ANALYSIS, [row for number, row in enumerate(rows) if number in chosen])
    assert estimate_clustered(ANALYSIS, table.clustered(ANALYSIS.names, places)) == alone


@given(st.lists(st.lists(SCORES, max_size=3), max_size=8), st.sets(st.integers(0, 7)))
def test_shared_samples_of_a_run_are_those_rows_alone(found: list[list[Score]], chosen: set[int]) -> None:
    samples = [SampleScores(sample=f"s{n}", group="g" * (n % 3), scores=scores) for n, scores in enumerate(found)]
    shared = frozenset(f"s{n}" for n in chosen if n < len(found) and found[n])
    ours = ScoredRun(samples).clustered(ANALYSIS.names, shared)
    rows = [(each.group or each.sample, score) for each in samples if each.sample in shared for score in each.scores]
    theirs = sort_into_clusters(rows, ANALYSIS.names)
    assert ours.labels == theirs.labels and ours.measures.keys() == theirs.measures.keys()
    for name, one in ours.measures.items():
        assert (one.counts == theirs.measures[name].counts).all() and (
            one.cluster == theirs.measures[name].cluster
        ).all()


def test_stored_records_are_a_sequence(tmp_path: Path) -> None:
    rows = [SampleScores(sample=f"s{number}", diagnostics={"length": number / 3}) for number in range(5)]
    with replacing_lines(Folder(tmp_path), "scores.jsonl") as write:
        for row in rows:
            write(msgspec.json.encode(row))
    stored = StoredRecords(Folder(tmp_path), "scores.jsonl", SampleScores)
    assert list(stored) == rows and len(stored) == 5 and stored[-1] == rows[-1] and list(stored[1:3]) == rows[1:3]
    with pytest.raises(IndexError):
        stored[5]


def test_lines_that_could_not_all_be_written_replace_nothing(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_bytes(b"old\n")
    with pytest.raises(RuntimeError), replacing_lines(Folder(tmp_path), "scores.jsonl") as write:
        write(b"new")
        raise RuntimeError
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old\n"]


def test_answers_beyond_memory_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_files, "_HELD", 64)
    found = StoredAnswers()
    texts = {f"p{number}": f"text {number} \u4e2d\n" * number for number in range(20)}
    for name, text in texts.items():
        found[name] = Prediction(sample="other", text="before")
        found[name] = Prediction(sample="other", text=text, outcome="truncated")
    del found["p3"]
    assert {name: each.text for name, each in found.items()} == {n: t for n, t in texts.items() if n != "p3"}
    assert found["p4"] == Prediction(sample="p4", text=texts["p4"], outcome="truncated") and "p3" not in found


def test_of_several_answers_of_one_name_the_last_one_counts() -> None:
    answers = [Prediction(sample=name, text=text) for name, text in (("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"))]
    answers.append(Prediction(sample="b", outcome="missing"))
    matched = match_answers(answers, ["a", "b", "d"], ["a", "b", "c", "d"])
    assert {name: each.text for name, each in matched.found.items()} == {"a": "3", "b": "2"}
    assert (matched.double, matched.missing, matched.extra) == (["a"], ["d"], [])


def test_very_many_answers_are_not_written_as_files_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_MOST_FILES", 5)
    make_folder(tmp_path)
    label, profile = load_profile(f"python:{tmp_path}/reader.py:right")
    progress = Progress()
    plan = Plan(benchmark=str(tmp_path / "mydocs"), label=label, profile=profile, runs=tmp_path / "runs")
    folder = asyncio.run(infer(plan, progress))
    assert not (folder.path / "predictions").exists()
    assert any("6 answers are in predictions.jsonl; to make files: loupe export" in line for line in progress.news)
    assert len(folder.prediction_places()) == 6
