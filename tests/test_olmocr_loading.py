"""olmOCR-Bench: folders that are read, and records that are refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.olmocr.candidates import CandidateFiles, join_repeats, split_repeats
from loupe.benchmarks.olmocr.loading import read_test_set
from loupe.benchmarks.olmocr_bench import load
from loupe.errors import DatasetError

PRESENT: dict[str, Any] = {"pdf": "a.pdf", "page": 1, "id": "a1", "type": "present", "text": "word"}


def make(folder: Path, files: dict[str, list[dict[str, Any]]], pdfs: tuple[str, ...] = ("a.pdf",)) -> Path:
    for name, rows in files.items():
        (folder / name).write_text("\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for pdf in pdfs:
        (folder / "pdfs" / pdf).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pdfs" / pdf).write_bytes(b"%PDF-1.4")
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": "**"}, "`text` is empty"),
        ({"text": None}, "`text` is null"),
        ({"max_diffs": -1}, "`max_diffs` is -1"),
        ({"max_diffs": "2"}, "`max_diffs` is '2'"),
        ({"typo": 1}, "no field typo"),
        ({"type": "presence"}, "unknown test type 'presence'"),
        ({"page": 0}, "pages count from 1"),
        ({"pdf": "../a.pdf"}, "no path of a .pdf below pdfs/"),
        ({"pdf": ""}, "`pdf` is empty"),
        ({"first_n": "9"}, "`first_n` is '9'"),
        ({"type": "footnote", "text": ..., "marker": "1", "appears_before_marker": "**"}, "`appears_before_marker`"),
        ({"type": "footnote", "text": ..., "marker": "1", "appears_after_marker": "<b></b>"}, "`appears_after_marker`"),
    ],
)
def test_a_broken_record_is_named_by_file_and_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    broken = {name: value for name, value in ({**PRESENT, "id": "a2"} | change).items() if value is not ...}
    make(tmp_path, {"t.jsonl": [PRESENT, broken]})
    with pytest.raises(DatasetError) as refused:
        read_test_set(tmp_path)
    assert refused.value.message.startswith(f"{tmp_path / 't.jsonl'}, line 3: ")
    assert said in refused.value.message


def test_a_line_that_is_no_json_and_an_id_twice_in_a_file_are_named_too(tmp_path: Path) -> None:
    make(tmp_path, {"t.jsonl": [PRESENT, PRESENT]})
    with pytest.raises(DatasetError, match="line 3: the id 'a1' is that of line 1"):
        read_test_set(tmp_path)
    (tmp_path / "t.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DatasetError, match="line 1: no JSON"):
        read_test_set(tmp_path)


def test_folders_in_another_layout_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no test files"):
        read_test_set(tmp_path)
    (tmp_path / "t.jsonl").write_text("")
    with pytest.raises(DatasetError, match="no pdfs folder"):
        read_test_set(tmp_path)
    (tmp_path / "pdfs").mkdir()
    with pytest.raises(DatasetError, match="no PDF here"):
        read_test_set(tmp_path)


def test_documents_without_a_baseline_test_get_one_and_others_keep_theirs(tmp_path: Path) -> None:
    blank = {"pdf": "sub/b.pdf", "page": 1, "id": "b", "type": "baseline", "max_length": 3}
    make(tmp_path, {"t.jsonl": [PRESENT], "blanks.jsonl": [blank]}, ("a.pdf", "sub/b.pdf", "c.pdf"))
    found = read_test_set(tmp_path)
    tests = {test.id: test.category for page in found.pages for test in page.tests}
    assert tests == {"a1": "t", "a.pdf_baseline": "baseline", "b": "blanks", "c.pdf_baseline": "baseline"}
    assert found.categories == ("blanks", "t", "baseline")
    assert [sample.id for sample in load(tmp_path)] == ["a_pg1_repeat1", "c_pg1_repeat1", "sub/b_pg1_repeat1"]
    assert [sample.id for sample in load(tmp_path, baseline="skip")] == ["a_pg1_repeat1"]


def test_a_single_file_considers_only_the_documents_it_names(tmp_path: Path) -> None:
    make(tmp_path, {"t.jsonl": [PRESENT], "u.jsonl": [{**PRESENT, "id": "u", "pdf": "c.pdf"}]}, ("a.pdf", "c.pdf"))
    assert {page.pdf for page in read_test_set(tmp_path / "t.jsonl").pages} == {"a.pdf"}


def test_an_id_in_two_files_counts_in_the_last_one(tmp_path: Path) -> None:
    make(tmp_path, {"t.jsonl": [PRESENT], "u.jsonl": [{**PRESENT, "page": 2}]})
    tests = [test for page in read_test_set(tmp_path).pages for test in page.tests if test.kind == "present"]
    assert [(test.page, test.category) for test in tests] == [(1, "u"), (2, "u")]


def test_files_of_a_page_are_found_by_name_with_the_official_mix_up() -> None:
    answers = ("a_pg1_repeat1", "a_pg1_repeat2", "a_pg2_repeat1", "x_pg1_pg1_repeat1", "x_pg1_pg2_repeat1")
    files = CandidateFiles([*(f"{name}.md" for name in answers), "b/a_pg1_repeat1.md", "a.md", "a_pg1_repeat1.txt"])
    assert files.answers_to("a.pdf", 1) == ["a_pg1_repeat1.md", "a_pg1_repeat2.md"]
    assert files.answers_to("b/a.pdf", 1) == ["b/a_pg1_repeat1.md"]
    assert files.answers_to("x_pg1.pdf", 1) == ["x_pg1_pg1_repeat1.md", "x_pg1_pg2_repeat1.md"]
    assert files.answers_to("x_pg1.pdf", 2) == ["x_pg1_pg2_repeat1.md"]
    assert files.answers_to("a.pdf", 3) == []


@pytest.mark.parametrize("texts", [["a"], [""], ["a", "b"], ["a", None], [None, "\x1e[]"]])
def test_repeats_travel_as_one_text(texts: list[str | None]) -> None:
    assert split_repeats(join_repeats(texts)) == texts
