"""Lines of samples.jsonl under review: what a decision writes, what is refused, and what stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.rows import read_row
from loupe.errors import DatasetError
from loupe.web.review.entries import Change, Entry, FieldError
from loupe.web.review.own_samples import own_samples
from loupe.web.review.review_target import open_folder

CONFIG = FolderConfig(task="fields", fields={"day": "date", "total": "amount"}, labels=["form", "letter"])
TRUTH = own_samples(CONFIG, by="Ada")


def line(reference: Any, task: str = "fields", status: str | None = "draft", **more: Any) -> str:
    truth = {"truth": {"status": status}} if status else {}
    return json.dumps({"id": "x", "image": "a.png", "task": task, "reference": reference, **truth, **more}) + "\n"


def changed(text: str, status: Any = None, *, confirmed: bool = False, **fields: str) -> dict[str, Any]:
    after = TRUTH.changed(text, Change(status=status, fields=fields, confirmed=confirmed))
    found = json.loads(after)
    assert isinstance(found, dict) and after.endswith("\n") == text.endswith("\n")
    return found


def test_a_decision_notes_who_and_when_and_going_back_takes_both_away() -> None:
    found = changed(line({"day": "11.05.2024", "total": "7"}), "verified")
    assert found["truth"] == {"status": "verified", "by": "Ada", "at": found["truth"]["at"]}
    assert changed(json.dumps(found), "unreviewed")["truth"] == {"status": "draft"}
    assert changed(json.dumps(found), "rejected")["truth"]["status"] == "skipped"
    by_hand = line({"day": "", "total": "7"}, status=None)
    assert changed(by_hand, "verified")["truth"]["by"] == "Ada", "written by hand, and now confirmed"
    others = json.dumps({**found, "truth": {**found["truth"], "by": "Bo"}})
    assert TRUTH.changed(others, Change(status="verified", fields={})) == others
    assert changed(others, total="8")["truth"]["by"] == "Ada", "who edits verified truth answers for it"
    blank = line({"day": ""}, status="verified", truth={"status": "verified", "by": "Bo"})
    assert changed(blank, "verified")["reference"] == {"day": "", "total": ""}, "what is shown empty is accepted empty"
    assert changed(line(None), total="8") == json.loads(line({"day": "", "total": "8"}))


@pytest.mark.parametrize(
    ("text", "fields", "why"),
    [
        (line({"day": "in May", "total": ""}), {}, "field 'day': 'in May' is no date"),
        (line({"total": "x"}), {"total": "ten"}, "'ten' is no amount"),
        (line(None, "table"), {}, "not filled in yet"),
        (line("x", "table"), {"reference": "no table"}, "no table that can be read"),
        (line(None, "class"), {"reference": "latter"}, "did you mean 'letter'"),
        (line(None, "question", prompt="?"), {"reference": " \n"}, "not filled in yet"),
        (line({"total": "1"}), {"other": "1"}, "no field 'other'"),
        (line({"total": "1"}, colour="red"), {}, "unknown key 'colour'"),
        (line(None), {}, "accept again"),
        (line({"day": "", "total": " "}), {}, "accept again"),
        (line({"day": "1.2.2024", "total": ""}), {"day": ""}, "accept again"),
        (line("", "markdown"), {}, "accept again"),
        (line("", "formula"), {}, "not filled in yet"),
    ],
)
def test_what_would_be_refused_later_is_not_verified(text: str, fields: dict[str, str], why: str) -> None:
    with pytest.raises(FieldError, match=why) as refused:
        changed(text, "verified", **fields)
    assert refused.value.ask == ("accept again" in why)
    assert changed(text, "rejected")["truth"]["status"] == "skipped", "but it can be skipped"


def test_every_task_has_its_form_and_writes_its_kind_of_reference() -> None:
    for task, typed, wanted in (
        ("text", " a\nb ", " a\nb "),
        ("markdown", "", ""),
        ("formula", "x^2", "x^2"),
        ("question", "1.00\n\n 1,00 ", ["1.00", "1,00"]),
        ("class", "form", "form"),
        ("table", "|a|b|\n|-|-|\n|1|2|", "|a|b|\n|-|-|\n|1|2|"),
    ):
        found = changed(line(None, task, prompt="?"), "verified", confirmed=True, reference=typed)
        assert found["reference"] == wanted, task
        assert read_row(json.dumps(found).encode(), 1, CONFIG).wrong == ()
    assert changed(line(None), "verified", confirmed=True)["reference"] == {"day": "", "total": ""}


def test_what_needs_a_look_comes_first_and_stays_where_it_is(tmp_path: Path) -> None:
    drafts = {"a": {"total": "1"}, "b": {"total": "2"}}
    truths: list[dict[str, Any]] = [
        {"engines": ["a", "b"], "drafts": drafts},
        {"engines": ["a"], "drafts": {"a": None}},
        {"engines": ["a", "b"], "drafts": drafts, "differs": ["total"]},
        {"engines": ["a"], "drafts": {"a": {"total": "1"}}},
    ]
    lines = [
        line({"total": "1"})
        .replace('"x"', f'"{number}"')
        .replace('{"status": "draft"}', json.dumps({"status": "draft"} | truth))
        for number, truth in enumerate(truths)
    ]
    (tmp_path / "loupe.toml").write_text('[benchmark]\ntask = "fields"\n')
    (tmp_path / "samples.jsonl").write_text("".join([*lines, "{no\n", "\n"]))
    reviewed = open_folder(tmp_path, document_type=None, by="Ada")
    order = [row.entry.id for row in reviewed.entries()]
    assert order == ["2", "", "3", "0", "1"]
    first = reviewed.entries()[0]
    reviewed.change(first.number, first.seen, Change(status="verified", fields={}))
    assert [row.entry.id for row in reviewed.entries()] == order
    with pytest.raises(DatasetError, match=r"samples.jsonl, line 5: not JSON"):
        reviewed.change(5, reviewed.entries()[1].seen, Change(status="verified", fields={}))
    for typed in ("1", "12", "12,5"):
        row = reviewed.entries()[-2]
        reviewed.change(row.number, row.seen, Change(fields={"total": typed}, going="first"))
    for change in (
        Change(fields={"total": "13"}, going="second"),
        Change(status="verified", fields={}),
        Change(fields={"total": "14"}),
        Change(status="unreviewed", fields={"total": "15"}, going="third"),
        Change(fields={"total": "16"}, going="third"),
    ):
        row = reviewed.entries()[-2]
        reviewed.change(row.number, row.seen, change)
    found = []
    while reviewed.undo():
        sample = json.loads((tmp_path / "samples.jsonl").read_text().splitlines()[0])
        found.append((sample["reference"]["total"], sample["truth"]["status"]))
    typed_then_accepted = [("12,5", "draft"), ("13", "draft"), ("13", "verified"), ("14", "verified"), ("15", "draft")]
    assert found[:-2] == typed_then_accepted[::-1], "what is typed in one go is one, all else each its own"
    assert (tmp_path / "samples.jsonl").read_text().splitlines(keepends=True)[0] == lines[0]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
states = anything | st.fixed_dictionaries({"status": st.sampled_from(["draft", "verified", "skipped", "?"])})
rows = st.fixed_dictionaries(
    {"id": anything, "reference": anything},
    optional={"task": st.sampled_from(["text", "fields", "table", "class", "question"]) | anything}
    | {"truth": states, "image": anything, "images": anything, "tags": anything, "text": anything, "prompt": anything},
)


@settings(max_examples=50)
@given(rows)
def test_any_line_is_shown_or_named_and_nothing_else_is_raised(row: dict[str, Any]) -> None:
    text = json.dumps(row)
    entry = TRUTH.read(text)
    assert isinstance(entry, Entry) and isinstance(entry.id, str)
    for field in entry.fields:
        assert isinstance(field.value, str)
    try:
        after = TRUTH.changed(text, Change(status="verified", fields={}, confirmed=True))
    except FieldError:
        return
    assert read_row(after.encode(), 2, CONFIG).wrong == ()
