"""What a run on documents of one's own must not pass over: truth that is an engine's draft, labels that nobody gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.survey import contents_of
from loupe.cli.compare import sections
from loupe.report.collect import collect
from loupe.report.html import environment, group_context
from loupe.results.comparing.runs import compare_runs
from loupe.results.unverified import accepted_drafts
from loupe.runs.folder import RunFolder
from tests.support.command_line import loupe

DRAFTS = (
    {"a": "one", "b": "wan"},
    {"a": "two", "b": "too"},
    {"a": "three", "b": "tree"},
    {"a": "for", "b": "four"},
)
SAID = (
    "3 of 4 references match the draft of a word for word and 1 of 4 references matches the draft of b word for word: "
    "that favours them."
)


def scored(root: Path, settings: str, rows: list[dict[str, object]], *engines: str) -> tuple[list[Path], str]:
    (root / "own").mkdir()
    (root / "own" / "loupe.toml").write_text(settings)
    (root / "own" / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [json.dumps({"id": row["id"], "text": "a page full of words"}) + "\n" for row in rows]
    (root / "answers.jsonl").write_text("".join(lines))
    for engine in engines:
        done = loupe("score", "own", "answers.jsonl", "--name", engine, "--plain", cwd=root)
        assert done.returncode == 0, done.stderr
    return [root / "runs" / engine / "own" for engine in engines], done.stdout


def test_verified_truth_that_is_a_draft_to_the_letter_is_said_in_every_table(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": f"{place}", "text": "x", "reference": reference, "truth": {"status": "verified", "drafts": drafts}}
        for place, (reference, drafts) in enumerate(zip(("one", "two", "three", "four"), DRAFTS, strict=True))
    ]
    runs, printed = scored(tmp_path, '[benchmark]\ntask = "text"\n', rows, "a", "c")
    assert SAID in printed.splitlines()
    assert (SAID,) in [tuple(row) for section in sections(compare_runs(runs)) for row in section.rows]
    shown = group_context(collect(runs)[0])
    assert SAID in environment().get_template("leaderboard.html").render(group=shown, groups=[shown])
    done = loupe("score", "own", "answers.jsonl", "--name", "few", "--limit", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = [RunFolder.open(path).stored_result() for path in (*runs, tmp_path / "runs" / "few" / "own")]
    found = [result for result in results if result is not None]
    assert accepted_drafts(found) == accepted_drafts(found[::-1]) == SAID and len(found) == 3


def test_a_run_without_any_label_says_so_and_shows_no_figures_of_text(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": f"{place}", "text": "x", "reference": "bill", "truth": {"status": "verified", "drafts": {"a": "bill"}}}
        for place in range(3)
    ]
    runs, printed = scored(tmp_path, '[benchmark]\ntask = "class"\nlabels = ["bill", "other"]\n', rows, "a")
    assert "no answer is one of the labels: plain OCR gives no labels" in printed
    result = RunFolder.open(runs[0]).stored_result()
    assert result is not None and "empty" in result.diagnostics
    assert not {"insertion_rate", "prediction_length", "reference_length"} & result.diagnostics.keys()
    assert "3 of 3 references match the draft of a word for word: that favours it." in printed.splitlines()


def test_a_task_of_the_wrong_type_is_a_problem_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    row = {
        "id": "a",
        "text": "x",
        "task": ["text"],
        "reference": "b",
        "truth": {"status": "verified", "drafts": {"a": "b"}},
    }
    (tmp_path / "own" / "samples.jsonl").write_text(json.dumps(row) + "\n")
    for words, code in ((("bench", "check"), 2), (("bench", "show"), 0)):
        done = loupe(*words, "own", cwd=tmp_path)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr


def test_only_the_engine_whose_draft_is_the_reference_has_drafted_the_truth(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "id": f"{place}",
            "text": "x",
            "reference": "one",
            "truth": {"status": "draft", "differs": ["reference"], "drafts": {"a": "one", "b": "wan"}},
        }
        for place in range(2)
    ]
    contents = contents_of(_folder(tmp_path, rows), FolderConfig())
    assert dict(contents.drafters) == {"a": 2}
    edited = [row | {"reference": "once"} for row in rows]
    assert dict(contents_of(_folder(tmp_path, edited), FolderConfig()).drafters) == {"a": 2, "b": 2}


def _folder(root: Path, rows: list[dict[str, object]]) -> Path:
    (root / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


@pytest.mark.parametrize(
    ("task", "reference", "same", "other"),
    [
        ("text", "one", "one", "One"),
        ("markdown", "# one", "# one", "one"),
        ("table", "<table><tr><td>1", "<table><tr><td>1", "<table><tr><td>2"),
        ("formula", "x^2", "x^2", "x^3"),
        ("question", ["yes"], ["yes"], ["no"]),
        ("class", "bill", "bill", None),
        ("fields", {"day": "1 May", "vat": ""}, {"day": "1 May"}, {"day": "2 May", "vat": ""}),
    ],
)
def test_verified_references_that_are_a_draft_are_counted_in_every_task(
    tmp_path: Path, task: str, reference: object, same: object, other: object
) -> None:
    rows = [
        {"id": name, "text": "x", "task": task, "reference": reference, "truth": {"status": status, "drafts": drafts}}
        for name, status, drafts in (
            ("verified", "verified", {"a": same, "b": other}),
            ("draft", "draft", {"a": same, "b": same}),
            ("alone", "verified", {"b": other}),
        )
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert contents_of(tmp_path, FolderConfig()).accepted == {"a": {"verified"}}
