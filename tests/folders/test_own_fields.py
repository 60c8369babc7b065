"""Folders with typed fields, and with truth that nobody has verified: how they are scored, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import loupe
from loupe.benchmarks.folders.own import check_folder, open_folder
from loupe.benchmarks.folders.own.config import FIELD_TYPES, FieldType, judge_field, label_mistakes, label_of
from loupe.benchmarks.folders.own.folder_files import find_documents
from loupe.benchmarks.folders.own.normalization import Comparison
from loupe.benchmarks.folders.own.scorers import class_figures
from loupe.cli.init import ask
from loupe.errors import UsageError
from loupe.results.class_tables import class_sections
from loupe.results.sections import result_sections
from loupe.results.tables.terminal import tab_separated
from loupe.types import Prediction, Result, SampleScores, Scored

Make = Callable[..., Path]
FIELDS = 'task = "fields"\n[fields]\nday = "date"\ntotal = "amount"\nnumber = "id"\nseller = "company"\nnote = "text"'
TRUTH = {
    "day": "2024-05-11",
    "total": "1,234.50",
    "number": "RE 2024-17",
    "seller": "Autohaus Hoffmann e.K.",
    "note": "net",
}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a folder of one page with these settings and lines."""

    def write(config: str, *lines: dict[str, Any]) -> Path:
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "loupe.toml").write_text(f"[benchmark]\n{config}\n", encoding="utf-8")
        rows = [{"id": f"s{n}", "image": "a.png", **line} for n, line in enumerate(lines, 1)]
        (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        Image.new("RGB", (40, 30), "white").save(folder / "a.png")
        return folder

    return write


def score_of(kind: FieldType, prediction: str, reference: str) -> float:
    return judge_field(kind, prediction, reference, comparison=Comparison())[0]


@pytest.mark.parametrize(
    ("kind", "prediction", "reference", "right"),
    [
        ("date", "11. Mai 2024", "2024-05-11", 1.0),
        ("date", "12.05.2024", "2024-05-11", 0.0),
        ("date", "soon", "soon", 1.0),
        ("amount", "EUR 1.234,50", "1,234.50", 1.0),
        ("amount", "1.234,51", "1,234.50", 0.0),
        ("id", "re 2024 - 17", "RE2024-17", 1.0),
        ("id", "RE2024-71", "RE2024-17", 0.0),
        ("company", "AUTOHAUS HOFFMANN", "Autohaus Hoffmann e.K.", 1.0),
        ("person", "Weber, A.", "Dr. Anna Weber", 1.0),
        ("text", "hello wurld", "Hello World", 10 / 11),
        ("text", "other", "Hello World", 0.0),
    ],
)
def test_each_type_has_its_own_idea_of_equal(kind: FieldType, prediction: str, reference: str, right: float) -> None:
    assert score_of(kind, prediction, reference) == pytest.approx(right)


@given(st.sampled_from(FIELD_TYPES), st.text(max_size=30), st.text(max_size=30))
def test_a_value_is_right_against_itself_and_only_nothing_against_nothing(kind: FieldType, a: str, b: str) -> None:
    assert score_of(kind, a, a) == 1.0
    assert 0.0 <= score_of(kind, a, b) <= 1.0
    assert score_of(kind, "", "x1") == 0.0 and score_of(kind, "x1", "") == 0.0


def test_fields_with_types_are_asked_for_together_and_scored_by_type(make: Make) -> None:
    benchmark = open_folder(make(FIELDS, {"reference": {**TRUTH, "note": ""}}, {"reference": {"total": "7"}}))
    first, second = benchmark.load()
    assert first.prompt == second.prompt and "keys: day, total, number, seller, note\n" in first.prompt
    answer = {
        "Day": "11/05/2024",
        "total": "€ 1 234,50",
        "number": "RE2024-17",
        "seller": "Autohaus Hofmann",
        "note": 1,
    }
    scores = benchmark.score(first, Prediction(text=json.dumps(answer)))
    assert isinstance(scores, list)
    right = {score.unit: score.counts[0] for score in scores if score.measure == "field_score"}
    assert right == {"day": 1.0, "total": 1.0, "number": 1.0, "seller": 1.0, "note": 0.0}
    assert {score.tags["field"] for score in scores if score.unit} == set(TRUTH)
    assert benchmark.headline_measure == "field_score" and "+types=" in benchmark.version
    # A field that the reference does not have is one that the page does not have: inventing it is wrong.
    invented = benchmark.score(second, Prediction(text='{"total": "7", "note": "paid", "TOTAL": "8", "day": ""}'))
    assert isinstance(invented, list)
    right = {score.unit: score.counts[0] for score in invented if score.measure == "field_score"}
    assert right == {"day": 1.0, "total": 1.0, "number": 1.0, "seller": 1.0, "note": 0.0}


@pytest.mark.parametrize("types", ["", "\n[fields]\n" + "".join(f'{kind}_ = "{kind}"\n' for kind in FIELD_TYPES)])
def test_nothing_is_one_rule_for_all_types_and_invented_values_have_a_rate(make: Make, types: str) -> None:
    names = [f"{kind}_" for kind in FIELD_TYPES]
    benchmark = open_folder(make(f'task = "fields"{types}', {"reference": dict.fromkeys(names, "") | {"id_": "N/A"}}))
    (sample,) = benchmark.load()

    def rates(answer: Mapping[str, object], **more: Any) -> tuple[float, list[float]]:
        scores = benchmark.score(sample, Prediction(text=json.dumps(answer), **more))
        assert isinstance(scores, list)
        headline = [one.counts[0] for one in scores if one.measure == benchmark.headline_measure]
        return sum(headline), [one.counts[0] for one in scores if one.measure == "invented"]

    assert rates(dict.fromkeys(names, "N/A")) == rates({}) == (6.0, [0.0] * 6)
    assert rates({name: [] for name in names}) == rates({name: {"sum": None} for name in names}) == (6.0, [0.0] * 6)
    assert rates(dict.fromkeys(names, "\u2013") | {"id_": "7"}) == (5.0, [0, 0, 0, 1, 0, 0])
    assert rates({}, outcome="error", error="gone") == (0.0, [])
    prose = benchmark.score(sample, Prediction(text="The total is 10 and VAT id DE123"))
    assert isinstance(prose, list) and "invented" not in {one.measure for one in prose}, "it is no object: nobody knows"
    assert not next(one for one in benchmark.measures if one.name == "invented").higher_is_better


@pytest.mark.parametrize(
    ("text", "said"), [('{"total": "7"}', []), ("seven", ["invented\tno answer is a JSON object"])]
)
def test_a_folder_without_an_empty_field_has_no_word_on_invented_values(make: Make, text: str, said: list[str]) -> None:
    folder = make('task = "fields"', {"reference": {"total": "7"}})
    run = loupe.score(str(folder), {"s1": text}, name="one", runs=folder.parent / "runs", jobs=1)
    assert [line for line in tab_separated(result_sections(run.result)) if "invented" in line] == said


def test_types_see_the_spaces_that_texts_are_compared_without(make: Make) -> None:
    seller = "Anna Weber Metallbau GmbH"
    benchmark = open_folder(make(f'whitespace = "ignore"\n{FIELDS}', {"reference": {**TRUTH, "seller": seller}}))
    (sample,) = benchmark.load()
    answer = {"day": "May 11, 2024", "seller": "Anna Weber Metallbau", "note": "n e t"}
    scores = benchmark.score(sample, Prediction(text=json.dumps({**TRUTH, **answer})))
    assert isinstance(scores, list)
    assert [score.counts[0] for score in scores if score.measure == "field_score"] == [1.0] * 5


def test_without_types_fields_are_scored_as_they_always_were(make: Make) -> None:
    benchmark = open_folder(make('task = "fields"', {"reference": {"total": "12.50"}}))
    (sample,) = benchmark.load()
    assert [measure.name for measure in benchmark.measures] == [
        "field_similarity", "field_accuracy", "json_validity", "invented"
    ]  # fmt: skip
    scores = benchmark.score(sample, Prediction(text='{"total": "12,50"}'))
    assert isinstance(scores, list)
    assert [score.counts for score in scores if score.measure == "field_similarity"] == [(0.8, 1.0)]
    assert (benchmark.version, sample.tags) == ("1", {})


def test_mistakes_in_types_and_typed_values_are_named(make: Make) -> None:
    config = 'task = "fields"\n[fields]\ntotal = "amuont"\nday = "date"\nDay = "date"'
    folder = make(config, {"reference": TRUTH})
    found = [str(problem).removeprefix(f"{folder}/") for problem in check_folder(folder)]
    assert found[0].startswith("loupe.toml:4: fields: total: no type 'amuont'; did you mean 'amount'?")
    assert found[1].startswith("loupe.toml:6: fields: 'Day' and 'day' are one name")


def test_values_that_are_not_what_their_type_says_are_named_unless_they_are_drafts(make: Make) -> None:
    wrong = {"day": "yesterday", "totel": "1"}
    folder = make(FIELDS, {"reference": wrong}, {"reference": wrong, "truth": {"status": "draft"}})
    found = [str(problem).removeprefix(f"{folder}/").partition(" (")[0] for problem in check_folder(folder)]
    unknown = "field 'totel' is not in [fields]; did you mean 'total'?"
    assert found == [
        f"samples.jsonl:1: {unknown}",
        "samples.jsonl:1: field 'day': 'yesterday' is no date",
        f"samples.jsonl:2: {unknown}",
    ]


MIXED = (
    {"reference": "a"},
    {"reference": "b", "truth": {"status": "draft", "engines": ["x"], "drafts": {"x": "b"}}},
    {"reference": None, "truth": {"status": "draft", "engines": ["x"], "drafts": {"x": None}}},
    {"reference": "d", "truth": {"status": "skipped"}},
    {"reference": "e", "truth": {"status": "verified", "by": "Ada", "at": "2026-11-22T04:00:00Z"}},
)


def test_unverified_truth_is_refused_and_taken_only_with_a_mark(make: Make) -> None:
    folder = make('task = "text"', *MIXED)
    benchmark = open_folder(folder)
    assert check_folder(folder) == []
    with pytest.raises(UsageError, match="the truth of 2 of 5 samples is an unverified draft") as caught:
        list(benchmark.load())
    assert "--allow-unverified" in caught.value.hint
    samples = list(benchmark.load(allow_unverified=True))
    assert [(one.id, one.tags["truth"]) for one in samples] == [("s1", "verified"), ("s2", "draft"), ("s5", "verified")]
    assert benchmark.conclude is not None
    found = benchmark.conclude([SampleScores(sample=one.id, tags=dict(one.tags)) for one in samples])
    assert found.warnings == ["unverified truth: 1 of 3 samples are scored against unreviewed drafts, by x"]
    assert found.figures["truth"]["samples"] == {"verified": 2, "unverified": 1, "skipped": 1, "without truth": 1}
    assert found.figures["truth"]["drafted by"] == {"x": 1}


def test_a_draft_is_never_taken_for_truth_however_late_or_hidden(make: Make) -> None:
    verified, draft = ({"reference": "a", "truth": {"status": status}} for status in ("verified", "draft"))
    folder = make('task = "text"', verified, verified)
    benchmark = open_folder(folder)
    file = folder / "samples.jsonl"
    changed = json.dumps({"id": "s2", "image": "a.png", **draft})
    first = file.read_text("utf-8").splitlines()[0]
    for line in (changed, changed.replace("truth", "tr\\u0075th")):
        file.write_text(f"{first}\n{line}\n", encoding="utf-8")
        for opened in (benchmark, open_folder(folder)):
            with pytest.raises(UsageError, match="the truth of 1 of 2 samples is an unverified draft"):
                list(opened.load())
            samples = list(opened.load(allow_unverified=True))
            assert samples[1].tags == {"truth": "draft"}
            assert opened.conclude is not None
            rows = [SampleScores(sample=one.id, tags=dict(one.tags)) for one in samples]
            assert opened.conclude(rows).warnings[0].startswith("unverified truth: 1 of 2")


def test_an_engine_is_asked_to_draft_what_it_has_not_drafted_and_nobody_verified(make: Make) -> None:
    benchmark = open_folder(make('task = "text"', *MIXED))
    assert list(benchmark.load(draft_for="x")) == []
    again = benchmark.load(draft_for="x", draft_failed=True)
    assert [(one.id, one.truth) for one in again] == [("s3", None)]
    assert [one.id for one in benchmark.load(draft_for="y")] == ["s2", "s3"]


@pytest.mark.parametrize("config", ['task = "class"', 'task = "class"\nlabels = ["C++", "C#", "A+", "A-", "-"]'])
def test_labels_that_differ_in_marks_alone_are_different_labels(make: Make, config: str) -> None:
    names = ["C++", "C#", "A+", "A-", "-"]
    benchmark = open_folder(make(config, *({"reference": label} for label in names)))
    for sample in benchmark.load():
        right = {}
        for answer in (*names, "", "C", "**c#**."):
            scored = benchmark.score(sample, Prediction(text=answer))
            assert isinstance(scored, Scored)
            right[answer] = scored.scores[0].counts[0], scored.details["answered"]
        assert {answer: found[0] for answer, found in right.items()} == {
            **{label: float(label == sample.truth) for label in names},
            **{"": 0.0, "C": 0.0, "**c#**.": float(sample.truth == "C#")},
        }
        assert [right[answer][1] for answer in ("C#", "", "C")] == ["C#", "(no answer)", "(none of the labels)"]


@pytest.mark.parametrize(
    ("answer", "labels", "found"),
    [
        *(
            (answer, ["C", "B"], None)
            for answer in ("c#", "C++", "-c", "C-", "C*", "*C", "& C", "C &", "#c", ".c", '"c')
        ),
        *(
            (answer, ["C", "B"], "C")
            for answer in (
                "c.",
                " (C)! ",
                "**`c`**:",
                "„C“",
                "«c»",
                "<C>",
                "['c'].",
                "- c",
                "## **C**",
                "* 'c'",
                "```\nC\n```",
            )
        ),
        *(("C", labels, None) for labels in (["C++", "Java"], ["C#"], ["C*", "B"], [".c"], ["C", "B"][1:])),
        *(
            (answer, ["(Form)", "C.", "C"], label)
            for answer, label in (("form", "(Form)"), ('"c."', "C."), ("c!", "C"))
        ),
        *(
            (answer, ["!", "?!", "a"], label)
            for answer, label in (("**!**", "!"), ("?", None), ("()", None), ("", None))
        ),
    ],
)
def test_an_answer_is_a_label_without_stops_and_pairs_around_it(answer: str, labels: list[str], found: object) -> None:
    assert label_of(answer, labels) == found


def test_many_labels_cost_little_for_each_answer_and_too_many_are_refused() -> None:
    labels = tuple(f"label {number}" for number in range(10_000))
    started = time.process_time()
    assert all(label_of(f"(label {number}).", labels) == f"label {number}" for number in range(500))
    rows = [
        SampleScores(sample=label, details={"label": label, "answered": "(none)"}, group=label[:7]) for label in labels
    ]
    assert len(class_figures(rows[:500], labels)["labels"]) == 500
    assert time.process_time() - started < 5
    assert [*label_mistakes(labels)] == [] and [*label_mistakes((*labels, "x"))] == ["10,001 labels, more than 10,000"]


def test_a_long_answer_of_marks_is_read_at_once() -> None:
    started = time.process_time()
    assert label_of("*" * 10**6 + "c" + "*" * 10**6, ["C"]) == "C" and label_of("!" * 10**6, ["C"]) is None
    assert time.process_time() - started < 5


def test_labels_that_no_answer_could_tell_apart_are_refused(make: Make) -> None:
    folder = make('task = "class"\nlabels = ["Form", " form", ""]', {"reference": "Form"})
    found = [str(problem).removeprefix(f"{folder}/").partition(" (")[0] for problem in check_folder(folder)]
    assert found[:2] == [
        "loupe.toml:3: labels 'Form' and ' form' are one label, as case and spaces do not count",
        "loupe.toml:3: label '' is empty",
    ]
    with pytest.raises(UsageError, match="'C' and 'c' are one label"):
        ask(find_documents(folder), task="class", fields=(), labels=("C", "c"), title="", pages=None)


def test_labels_are_counted_against_each_other(make: Make) -> None:
    labels = ["invoice"] * 6 + ["letter"] * 4
    answers = ["Invoice."] * 5 + ["letter"] + ["letter"] * 2 + ["invoice", "a novel"]
    benchmark = open_folder(make('task = "class"', *({"reference": label} for label in labels)))
    rows = []
    for sample, answer in zip(benchmark.load(), answers, strict=True):
        scored = benchmark.score(sample, Prediction(text=answer))
        assert isinstance(scored, Scored)
        rows.append(SampleScores(sample=sample.id, scores=scored.scores, details=dict(scored.details)))
    found = class_figures(rows, ["invoice", "letter"])
    assert found["matrix"] == {
        "invoice": {"invoice": 5, "letter": 1, "(none of the labels)": 0},
        "letter": {"invoice": 1, "letter": 2, "(none of the labels)": 1},
    }
    ratios = {label: [round(each[name]["value"], 4) for name in each] for label, each in found["labels"].items()}
    assert ratios == {"invoice": [0.8333, 0.8333, 0.8333], "letter": [0.6667, 0.5, 0.5714]}
    # With more labels than a matrix can show, each still has its ratios, and a row says what is missing.
    many = [SampleScores(sample=f"{n}", details={"label": f"l{n}", "answered": f"l{n // 2}"}) for n in range(41)]
    figures = class_figures(many, [f"l{n}" for n in range(41)])
    assert figures["matrix"] == {} and len(figures["labels"]) == 41
    assert [figures["labels"]["l1"][name]["value"] for name in ("precision", "recall")] == [0.0, 0.0]
    shown = {"benchmark": "b", "version": "1", "engine": "e", "signature": "", "headline": "accuracy"}
    result = Result(**shown, measures={}, directions={}, units={}, figures={"classes": figures})
    ratios, matrix = class_sections(result)
    assert len(ratios.rows) == 41 and list(matrix.rows) == [("41 labels: too many for this table",)]
    # Of the few documents of a label, an interval would say nothing.
    assert found["labels"]["letter"]["recall"]["low"] is None
