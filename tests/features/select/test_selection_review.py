"""`loupe review DIR` on the ground-truth files of `loupe select`: what is written, and what is not."""

from __future__ import annotations

import io
import json
import os
import resource
import stat
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from loupe.cli.review import folder as command
from loupe.errors import DatasetError, LoupeError, UsageError, WriteError
from loupe.features.select.documents import Truth, find_documents, read_truth, write_truth
from loupe.features.select.review import SelectionFiles, find_selection
from loupe.files.folder import Folder
from loupe.web.review.entries import Change, FieldError
from loupe.web.review.line_file import ConflictError
from loupe.web.review.review_target import open_folder
from loupe.web.review.session import Review
from tests.support.command_line import loupe
from tests.support.web.review_browser import at, opened, press


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two invoices with drafts, one without, one whose file is broken, and a letter."""
    for name in ("positive/a", "positive/b", "positive/c", "positive/d", "negative/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (60, 40), len(name) * 9 + ord(name[-1])).save(tmp_path / f"{name}.png")
    drafts = {"a": Truth(date="2025-11-26", name="Nordwind_GmbH", text_model="m", generated="2026-02-22T18:46:12Z")}
    drafts["b"] = Truth(date="2025-11-27", verified=True, generated="2026-02-22T18:46:12Z")
    for document in documents(tmp_path):
        if document.path.stem in drafts:
            write_truth(document, "invoice", drafts[document.path.stem])
    with_more = json.loads((tmp_path / "positive/a.json").read_text("utf-8"))
    with_more |= {"zeile": [1, {"ü": None}]}
    with_more["metadata"]["note"] = "kept"
    (tmp_path / "positive/a.json").write_text(form(with_more), "utf-8")
    (tmp_path / "positive/d.json").write_text("{no", "utf-8")
    return tmp_path


def documents(folder: Path) -> Any:
    return find_documents(folder / "positive", folder / "negative")


def form(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def review(folder: Path) -> Review:
    return open_folder(folder, document_type=None, by="Ada")


def placed(reviewed: Review, ident: str) -> tuple[int, str]:
    return next((row.number, row.seen) for row in reviewed.entries() if row.entry.id == ident)


def test_files_are_confirmed_edited_and_taken_back_in_the_browser(browser: Browser, folder: Path) -> None:
    before = (folder / "positive/a.json").read_text("utf-8")
    (folder / "positive/a.json").chmod(0o444)
    with opened(browser, folder, "--type", "invoice") as (_, page, _):
        at(page, "positive/a.png")
        expect(page.locator("#locked")).to_contain_text("positive/a.json: the file is read-only")
        expect(page.locator("#verify")).to_be_disabled()
        press(page, "a")
        at(page, "positive/a.png")
        (folder / "positive/a.json").chmod(0o600)
        expect(page.locator("#verify")).to_be_enabled(timeout=8000)
        assert page.locator("#reject").is_hidden()
        press(page, "e", "Control+a")
        page.keyboard.insert_text("27. Nov 2025")
        press(page, "Enter", "a")
        at(page, "positive/c.png")
        wanted = json.loads(before) | {"date": "2025-11-27"}
        wanted["metadata"]["verified"] = True
        assert (folder / "positive/a.json").read_text("utf-8") == form(wanted)
        assert (folder / "positive/a.json").stat().st_mode & 0o777 == 0o600
        press(page, "Tab", "e")
        page.keyboard.insert_text("someday")
        press(page, "Enter")
        expect(page.locator("[data-field=date] .field-problem")).to_contain_text("cannot be read as a date")
        assert not (folder / "positive/c.json").exists()
        press(page, "e", "Escape", "a")
        expect(page.locator("#toast")).to_contain_text("accept again")
        press(page, "a")
        expect(page.locator("#toast")).to_have_text("positive/c.png: verified")
        at(page, "negative/x.png")
        assert json.loads((folder / "positive/c.json").read_text("utf-8"))["metadata"]["textModel"] == ""
        press(page, "u")
        at(page, "positive/c.png")
        assert not (folder / "positive/c.json").exists()
    assert (folder / "positive/d.json").read_text() == "{no"


def test_the_form_is_that_of_select_and_what_would_break_a_file_is_refused(folder: Path) -> None:
    reviewed = review(folder)
    assert reviewed.counts() == {"unreviewed": 3, "verified": 1, "broken": 1}
    before = {path: path.read_bytes() for path in folder.glob("*/*.json")}
    reviewed.change(*placed(reviewed, "positive/b.png"), Change(status="unreviewed", fields={}))
    assert b'"verified": false' in (folder / "positive/b.json").read_bytes()
    reviewed.change(*placed(reviewed, "positive/b.png"), Change(status="verified", fields={}))
    reviewed.change(*placed(reviewed, "positive/a.png"), Change(status="unreviewed", fields={}))
    assert {path: path.read_bytes() for path in folder.glob("*/*.json")} == before
    reviewed.change(*placed(reviewed, "negative/x.png"), Change(status="verified", fields={}))
    found = {each.id: read_truth(each, "invoice") for each in documents(folder)}
    assert found["negative/x.png"].truth is not None and found["negative/x.png"].truth.verified
    assert not found["negative/x.png"].wrong_folder
    c = placed(reviewed, "positive/c.png")
    with pytest.raises(FieldError, match="accept again"):
        reviewed.change(*c, Change(status="verified", fields={}))
    for fields, why in (({"date": "32.1.2025"}, "date"), ({"metadata": "x"}, "no field"), ({"date": 1}, "text")):
        with pytest.raises(FieldError, match=why):
            reviewed.change(*c, Change(fields=fields))
    with pytest.raises(FieldError, match="cannot be skipped"):
        reviewed.change(*c, Change(status="rejected", fields={}))
    with pytest.raises(DatasetError, match=r"positive/d.json: no valid JSON"):
        reviewed.change(4, reviewed.entries()[3].seen, Change(status="verified", fields={}))
    (folder / "positive/c.json").write_text("{}")
    with pytest.raises(ConflictError):
        reviewed.change(*c, Change(status="verified", fields={"date": "1.2.2025"}))
    assert (folder / "positive/c.json").read_text() == "{}"


def test_a_write_that_fails_leaves_nothing_behind_and_one_that_is_done_is_not_called_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewed = review(folder)
    b, files = placed(reviewed, "positive/b.png"), sorted(folder.rglob("*"))
    before = (folder / "positive/b.json").read_bytes()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, largest[1]))  # as on a full disk
    try:
        with pytest.raises(WriteError, match="cannot be written"):
            reviewed.change(*b, Change(fields={"secondaryField": "Name"}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, largest)
    assert sorted(folder.rglob("*")) == files and (folder / "positive/b.json").read_bytes() == before
    sync = os.fsync

    def sync_files_alone(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")  # as of file systems that cannot sync folders
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync_files_alone)
    reviewed.change(*b, Change(fields={"secondaryField": "Name"}))
    assert b'"Name"' in (folder / "positive/b.json").read_bytes()


def test_only_files_that_were_changed_are_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewed = review(folder)
    reviewed.change(*placed(reviewed, "positive/c.png"), Change(fields={"date": "1.2.2025"}))
    reviewed.refresh()
    read: list[str] = []
    real = Folder.open

    def noting(folder: Folder, name: str) -> io.BufferedReader:
        read.append(name)
        return real(folder, name)

    monkeypatch.setattr(Folder, "open", noting)
    revision = reviewed.revision
    reviewed.refresh()
    assert (reviewed.locked, read, reviewed.revision) == ("", [], revision)
    (folder / "positive/b.json").replace(folder / "negative/x.json")
    (folder / "positive/a.json").chmod(0o444)
    reviewed.refresh()
    assert sorted(read) == ["a.json", "b.json", "x.json"] and reviewed.revision == revision + 1
    assert reviewed.locked == "positive/a.json: the file is read-only"
    assert reviewed.counts() == {"unreviewed": 3, "verified": 1, "broken": 1}


def test_a_file_that_cannot_be_read_hides_no_change_of_another(folder: Path) -> None:
    a, d = folder / "positive/a.json", folder / "positive/d.json"
    files = SelectionFiles(folder, find_selection(folder))
    a.write_text(a.read_text().replace("Nordwind", "Südwind"))
    d.unlink()
    d.mkdir()
    with pytest.raises(DatasetError, match="cannot be read"):
        files.refresh()
    d.rmdir()
    assert files.refresh() and "Südwind".encode() in b"".join(files.lines)


def test_a_file_in_the_wrong_folder_or_of_another_type_is_named_and_not_confirmed(folder: Path) -> None:
    file = folder / "positive/a.json"
    right = json.loads(file.read_text("utf-8"))
    file.write_text(form(right | {"isMatch": False}))
    reviewed = review(folder)
    with pytest.raises(FieldError, match="isMatch does not agree"):
        reviewed.change(*placed(reviewed, "positive/a.png"), Change(status="verified", fields={}))
    reviewed.change(*placed(reviewed, "positive/a.png"), Change(status="verified", fields={"isMatch": True}))
    right["metadata"]["verified"] = True
    assert file.read_text("utf-8") == form(right)
    letters = open_folder(folder, document_type="letter", by="")
    with pytest.raises(FieldError, match="documentType is 'invoice', not 'letter'"):
        letters.change(*placed(letters, "positive/a.png"), Change(status="verified", fields={"date": ""}))


def test_one_folder_of_negatives_is_confirmed_as_such(folder: Path) -> None:
    (folder / "negative").rename(folder / "others")
    for name, negative, wanted in (("others", True, False), ("others", False, True), ("negative", False, False)):
        (folder / "others").rename(folder / name)
        reviewed = open_folder(folder / name, document_type="invoice", by="", negative=negative)
        (row,) = reviewed.entries()
        assert (row.entry.section, "Filed as not" in row.entry.says) == (
            ("positive", False) if wanted else ("negative", True)
        )
        reviewed.change(row.number, row.seen, Change(status="verified", fields={}, confirmed=True))
        file = folder / name / "x.json"
        assert json.loads(file.read_text())["isMatch"] is wanted
        file.unlink()
        (folder / name).rename(folder / "others")


def test_what_cannot_be_reviewed_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to review here"):
        open_folder(tmp_path, document_type=None, by="")
    with pytest.raises(UsageError, match="holds no documents"):
        open_folder(tmp_path, document_type="invoice", by="")
    (tmp_path / "pos").mkdir()
    (tmp_path / "pos" / "a.pdf").write_bytes(b"%PDF")
    with pytest.raises(UsageError) as nothing:
        open_folder(tmp_path, document_type="invoice", by="")
    assert nothing.value.hint is not None and nothing.value.hint.startswith("pos: rename them positive and negative")
    (tmp_path / "t.jsonl").write_text("")
    for words, hint in ((["nowhere"], "no such folder"), (["t.jsonl"], "loupe review tests t.jsonl")):
        done = loupe("review", *words, cwd=tmp_path)
        assert done.returncode == 2 and hint in done.stderr and len(done.stderr.splitlines()) == 2


def test_the_next_command_ranks_models_on_what_was_reviewed(tmp_path: Path) -> None:
    for side in ("positive", "negative"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.pdf").write_bytes(b"")
    both = f"--positive {tmp_path}/positive --negative {tmp_path}/negative --ground-truth reuse"
    assert open_folder(tmp_path, document_type="invoice", by="").next_command() == f"loupe select --type invoice {both}"
    one = open_folder(tmp_path / "negative", document_type="invoice", by="", negative=True).next_command()
    assert one == f"loupe select --type invoice --positive DIR --negative {tmp_path}/negative --ground-truth reuse"


def test_ground_truth_of_a_selection_is_never_written_through_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("{}\n")
    for name in ("positive", "negative"):
        (tmp_path / "given" / name).mkdir(parents=True)
        (tmp_path / "given" / name / "one.pdf").write_bytes(b"%PDF-1.4\n" + name.encode())
    documents = find_selection(tmp_path / "given")
    files = SelectionFiles(tmp_path / "given", documents)
    documents[0].truth_file.symlink_to(victim)
    with pytest.raises(LoupeError, match="is a link to"):
        files.replace(1, files.lines[0], b"positive/one.pdf\n{}\n")
    assert victim.read_text() == "{}\n"


def test_the_options_of_a_review_are_those_of_ground_truth_first() -> None:
    names = [option.opts[0] for option in command.params if isinstance(option, click.Option)]
    assert names[:2] == ["--type", "--negative"]
