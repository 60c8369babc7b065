"""From a folder of files to draft truth: what `loupe init` and `loupe draft` write, ask, refuse and leave alone."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.benchmarks.folders.own import check_folder, not_in_samples, open_folder
from loupe.benchmarks.folders.own.config import FolderConfig, read_config
from loupe.benchmarks.folders.own.draft_truth import agreed, differing, draft_of, with_draft
from loupe.benchmarks.folders.own.folder_files import find_documents
from loupe.benchmarks.folders.own.starting import Beginning, begin, label_map, same_names, unlisted_files
from loupe.cli.init import ask
from loupe.errors import DatasetError, UsageError
from loupe.report.collect import collect
from loupe.report.html import environment as templates
from loupe.report.html import group_context
from loupe.results.comparing.runs import compare_runs
from tests.support.command_line import command, environment, loupe

READERS = """
import json, os

def note(word):
    with open("asked.txt", "a") as file:
        file.write(word + "\\n")

def one(request):
    note(f"one:{request.id}")
    if os.path.exists("stop") and request.id == "c":
        raise RuntimeError("no ink")
    return json.dumps({"Day": "11.05.2024", "total": "1.234,50 EUR"})

def two(request):
    note(f"two:{request.id}")
    return json.dumps({"day": "May 11, 2024", "total": "1,234.50"}) if request.id != "b" else "I see a page."
"""
FIELDS = FolderConfig(task="fields", fields={"day": "date", "total": "amount"})


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Two images, a PDF of six pages, one file that is no image, and one nobody asked about."""
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("a.png", "b.JPG"):
        Image.new("RGB", (40, 30), "white").save(folder / name)
    document = pypdfium2.PdfDocument.new()
    for _ in range(6):
        document.new_page(100, 100)
    document.save(folder / "c.pdf")
    document.close()
    (folder / "broken.png").write_text("no")
    (folder / "notes.txt").write_text("no")
    (tmp_path / "reader.py").write_text(READERS)
    return folder


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text("utf-8").splitlines()]


def test_fields_are_asked_of_the_first_pages_of_each_document(scans: Path) -> None:
    done = loupe("init", "scans", "--task", "fields", "--field", "day:date", "--field", "note", cwd=scans.parent)
    assert (done.returncode, done.stdout) == (0, "scans: 3 documents, 3 samples, task fields\n"), done.stderr
    assert (
        "left out broken.png" in done.stderr
        and "1 document with more pages: only the first 4 pages are used" in done.stderr
    )
    assert tomllib.loads((scans / "loupe.toml").read_text())["fields"] == {"day": "date", "note": "text"}
    assert [line["id"] for line in lines(scans)] == ["a", "b", "c"]
    assert lines(scans)[2]["images"] == [f"c.pdf#page={page}" for page in range(1, 5)]
    assert check_folder(scans) == []
    again = loupe("init", "scans", "--task", "text", cwd=scans.parent)
    assert again.returncode == 2
    assert "scans has loupe.toml and samples.jsonl already; nothing was changed" in again.stderr


def test_text_and_tables_are_asked_of_every_page(scans: Path) -> None:
    count = begin(scans, find_documents(scans), Beginning(task="table"))
    assert count == 8 and [line["id"] for line in lines(scans)][2:4] == ["c-p1", "c-p2"]
    assert {line.get("group", "") for line in lines(scans)} == {"", "c"}
    assert open_folder(scans).headline_measure == "teds" and check_folder(scans) == []


def test_sorted_documents_have_their_class_and_names_that_clash_are_told_apart(tmp_path: Path) -> None:
    for name in ("positive/x.png", "positive/X.jpg", "negative/x.png", ".hidden/y.png", "negative/100%: a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (9, 9)).save(tmp_path / name)
    found = find_documents(tmp_path)
    assert found.is_sorted and same_names(found) == [("positive/x.png", "positive/X.jpg")]
    labels = label_map(found, ["positive=invoice"])
    begin(tmp_path, found, Beginning(task="class", labels=labels))
    kept = {line["id"]: (line["reference"], "truth" in line) for line in lines(tmp_path)}
    assert set(kept) == {"negative/100- a", "negative/x", "positive/X", "positive/x-png"}
    assert kept["positive/X"] == ("invoice", False) and kept["negative/x"] == ("negative", False)
    assert check_folder(tmp_path) == [] and len(list(open_folder(tmp_path).load())) == 4
    with pytest.raises(UsageError, match="no documents in a folder 'letters'"):
        label_map(found, ["letters=letter"])


def test_a_file_with_several_names_is_one_document(tmp_path: Path) -> None:
    (tmp_path / ".store").mkdir()
    for name in ("b.png", ".store/kept.png", "other.png"):
        Image.new("L", (9, 9)).save(tmp_path / name)
    (tmp_path / "sub").mkdir()
    for name, target in (("a.png", "b.png"), ("sub/c.png", "../b.png"), ("k1.png", ".store/kept.png")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "k2.png").symlink_to("k1.png")
    (tmp_path / "hard.png").hardlink_to(tmp_path / "b.png")
    found = find_documents(tmp_path)
    assert [one.path for one in found.documents] == ["b.png", "k1.png", "other.png"]
    assert found.left_out["a.png"] == "a link: it is the same file as b.png"
    assert found.left_out["k2.png"].endswith("k1.png") and {"sub/c.png", "hard.png"} < found.left_out.keys()
    (tmp_path / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    (tmp_path / "samples.jsonl").write_text(
        "".join(json.dumps({"id": name, "image": f"{name}.png", "reference": ""}) + "\n" for name in ("a", "k2"))
    )
    assert "1 file is in no line of samples.jsonl: other.png; add" in not_in_samples(tmp_path)[0]
    assert unlisted_files(tmp_path)[0].startswith("1 file is in no line of samples.jsonl: other.png;")


def test_what_cannot_be_begun_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no images or PDF files here"):
        find_documents(tmp_path)
    assert (
        read_config(tmp_path)[1][0].hint == f"put scans or PDF files into it, then: loupe init {tmp_path} --task text"
    )
    Image.new("L", (9, 9)).save(tmp_path / "a.png")
    found = find_documents(tmp_path)
    for flags, message in (
        ({}, "which task?"),
        ({"task": "tabels"}, "no task 'tabels'; did you mean 'table'?"),
        ({"task": "fields"}, "no field named"),
        ({"fields": ["total:money"]}, "field 'total:money': no type 'money'"),
        ({"labels": ["one"]}, "a class needs two labels or more"),
        ({"task": "text", "labels": ["one"]}, "--label goes with --task class"),
    ):
        nothing: dict[str, Any] = {"task": None, "fields": (), "labels": (), "title": "", "pages": None}
        with pytest.raises(UsageError, match=re.escape(message)):
            ask(found, **(nothing | flags))
    done = loupe("init", ".", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: which task?\nhint: use --task text"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert loupe("review", cwd=tmp_path).stderr.startswith("error: which folder?\nhint: run: loupe review DIR")


def test_plain_text_is_no_draft_of_a_table_and_the_hint_says_what_is(scans: Path) -> None:
    begin(scans, find_documents(scans), Beginning(task="table"))
    done = loupe("draft", "scans", "-e", "python:reader.py:one", cwd=scans.parent)
    assert done.returncode == 3 and "try another engine: loupe draft scans --base-url URL" in done.stderr
    assert "to check them" not in done.stderr


def test_in_a_terminal_it_asks_for_what_is_missing(scans: Path) -> None:
    answers = [("Which task", "feilds"), ("Which task", "fields"), ("field", "day:dat"), ("field", "day:date")]
    said = talk(["init", "scans"], [*answers, ("field", "total:amount"), ("field", "")], scans.parent)
    assert "no task 'feilds'; did you mean 'fields'?" in said and "no type 'dat'; did you mean 'date'?" in said
    assert read_config(scans)[0] == FolderConfig(
        title="scans", task="fields", fields={"day": "date", "total": "amount"}
    )


def talk(words: list[str], answers: list[tuple[str, str]], cwd: Path) -> str:
    """Run `loupe` at a terminal of its own; type each answer once its question has appeared. All that was shown."""
    main, child = pty.openpty()
    process = subprocess.Popen(command(*words), cwd=cwd, env=environment(cwd), stdin=child, stdout=child, stderr=child)
    os.close(child)
    shown, seen = "", 0
    try:
        while select.select([main], [], [], 30)[0]:
            try:
                part = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            shown += part.decode()
            if answers and answers[0][0] in shown[seen:] and shown.rstrip(" ").endswith((":", "]")):
                seen = len(shown)
                os.write(main, f"{answers.pop(0)[1]}\n".encode())
        assert process.wait(30) == 0, shown
    finally:
        process.kill()
        os.close(main)
    assert not answers, shown
    return shown


def test_drafts_are_written_with_what_differs_and_verified_lines_stay_to_the_byte(scans: Path) -> None:
    begin(scans, find_documents(scans), Beginning(task="fields", fields={"day": "date", "total": "amount"}))
    file = scans / "samples.jsonl"
    verified = (
        b'{"id":"a", "image":"a.png",  "reference":{"total":"7"},"truth":{"status":"verified","by":"\\u00c5da"}}\n'
    )
    file.write_bytes(verified + b"\n" + b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    (scans.parent / "stop").touch()
    words = ["draft", "scans", "-e", "python:reader.py:one", "-e", "python:reader.py:two", "--json"]
    done = loupe(*words, cwd=scans.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["engines"]["python-reader.py_one"]["drafted"] == ["b"]
    assert "no ink" in found["engines"]["python-reader.py_one"]["failed"]["c"]
    assert "is no JSON object" in found["engines"]["python-reader.py_two"]["failed"]["b"]
    assert file.read_bytes().startswith(verified + b"\n{")
    # Each has been read by one engine alone: the other one failed, and disagrees with nobody.
    assert [line["truth"]["differs"] for line in map(json.loads, file.read_bytes().splitlines()[2:])] == [[], []]
    assert found["samples"]["one draft"] == 2
    checked = loupe("bench", "check", "scans", cwd=scans.parent).stderr
    assert "the ground truth of 2 samples is unverified: loupe review" in checked
    (scans.parent / "stop").unlink()
    again = json.loads(loupe(*words, cwd=scans.parent).stdout)
    assert again["engines"]["python-reader.py_one"]["drafted"] == ["c"]
    asked = (scans.parent / "asked.txt").read_text().split()
    assert sorted(asked) == [
        "one:b",
        "one:c",
        "one:c",
        "two:b",
        "two:c",
    ]  # an error is asked again, a bad answer is not
    done = loupe(*words[:2], "-e", words[-2], cwd=scans.parent)
    assert done.returncode == 0 and "skips samples with unusable answers (1); --fresh asks again" in done.stderr
    fresh = json.loads(loupe(*words[:2], *words[-3:], "--fresh", cwd=scans.parent).stdout)
    assert list(fresh["engines"]["python-reader.py_two"]["failed"]) == ["b"]
    assert (scans.parent / "asked.txt").read_text().split() == [*asked, "two:b"]
    assert again["samples"] == {"agree": 1, "differ": 0, "one draft": 1, "no draft": 0, "verified": 1, "skipped": 0}
    assert check_folder(scans) == []
    refused = loupe("run", "scans", "-e", "python:reader.py:one", cwd=scans.parent)
    assert refused.returncode == 2 and "the truth of 2 of 3 samples is an unverified draft" in refused.stderr
    engines = ["--engines", "python:reader.py:one,python:reader.py:two"]
    both = loupe("run", "scans", *engines, "--allow-unverified", "-j", "1", cwd=scans.parent)
    assert both.returncode == 0, both.stderr
    assert "opt:allow_unverified=true" in both.stdout and "unverified truth: 2 of 3 samples" in both.stdout
    assert "Unverified truth: 2 of 3 samples are scored against unreviewed drafts" in " ".join(both.stdout.split())
    assert "documents can show" not in both.stdout  # more documents would not tell who is right
    runs = sorted(path.parent for path in (scans.parent / "runs").rglob("run.json"))
    assert [row.truth for row in compare_runs(runs).runs] == ["drafted the ground truth", "drafted the ground truth"]
    (board,) = collect(runs)
    shown = templates().get_template("leaderboard.html").render(group=group_context(board))
    assert shown.count("drafted the ground truth</span>") == 2 and "have drafted that truth" in shown
    assert "documents can detect" not in shown


values = st.sampled_from(["", "2024-05-11", "11.05.2024", "May 11, 2024", "12.05.2024", "1.234,50", "$1,234.5", "x"])
field_drafts = st.none() | st.fixed_dictionaries({"day": values, "total": values})


@given(st.lists(field_drafts, min_size=1, max_size=4))
def test_agreement_knows_no_order_and_what_is_agreed_is_somebodys(drafts: list[Any]) -> None:
    assert differing(drafts, "fields", FIELDS) == differing(drafts[::-1], "fields", FIELDS)
    reference = agreed({str(n): draft for n, draft in enumerate(drafts)}, "fields", FIELDS)
    kept = [draft for draft in drafts if draft is not None]
    assert differing(kept, "fields", FIELDS) == differing(drafts, "fields", FIELDS), "no draft disagrees with none"
    assert (reference is None) == (not kept)
    for name in FIELDS.fields if kept else ():
        assert reference[name] in [draft[name] for draft in kept]
    if not differing(drafts, "fields", FIELDS):
        assert all(not differing([reference, draft], "fields", FIELDS) for draft in kept)


def test_a_reference_that_a_person_changed_stays_when_another_engine_drafts() -> None:
    line: dict[str, Any] = {"id": "a", "task": "text", "reference": None, "truth": {"status": "draft"}}
    line |= with_draft(line, "x", "one", FIELDS) or {}
    assert (line["reference"], line["truth"]["differs"]) == ("one", [])
    line["reference"] = "mine"
    line |= with_draft(line, "y", "two", FIELDS) or {}
    assert (line["reference"], line["truth"]["differs"]) == ("mine", ["reference"])
    assert with_draft({**line, "truth": {"status": "verified"}}, "z", "three", FIELDS) is None


def test_a_draft_that_can_be_used_is_not_lost_when_its_engine_gives_no_answer_later() -> None:
    line: dict[str, Any] = {"id": "a", "task": "text", "reference": None, "truth": {"status": "draft"}}
    for draft, answered, kept in (
        (None, True, {"x": None}),
        (None, False, {}),
        ("one", True, {"x": "one"}),
        (None, False, {"x": "one"}),
    ):
        line |= with_draft(line, "x", draft, FIELDS, answered=answered) or {}
        found = line["truth"].get("drafts", {}), line["reference"], line["truth"]["engines"]
        assert found == (kept, kept.get("x"), ["x"])


@pytest.mark.parametrize(
    ("task", "answer", "reference"),
    [
        ("text", " a\n", "a"),
        ("markdown", "```md\n# a\n```", "# a"),
        ("table", "no table", None),
        ("class", "Invoice.", "invoice"),
        ("class", "novel", None),
        ("fields", '{"Total": 12.5}', {"day": "", "total": "12.5"}),
        ("fields", '{"total": "\\ud800", "x": [1]}', {"day": "", "total": "\ufffd"}),
        ("text", "\ud800", "\ufffd"),
        ("fields", "12.5", None),
        ("question", " ", None),
    ],
)
def test_an_answer_is_a_reference_only_in_the_form_of_its_task(task: str, answer: str, reference: Any) -> None:
    found = draft_of(answer, task, FolderConfig(fields=FIELDS.fields, labels=["invoice"]))
    assert found.reference == reference and bool(found.why) == (reference is None)
