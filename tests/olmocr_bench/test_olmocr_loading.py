"""olmOCR-Bench: folders that are read, and records that are refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.olmocr_bench import load, score
from loupe.benchmarks.olmocr_bench.dataset import CandidateFiles, read_test_set
from loupe.benchmarks.shared.answer_texts import answers_of, join_answers
from loupe.errors import DatasetError
from loupe.pipeline.existing_answers import find_all
from loupe.types import Prediction

PRESENT: dict[str, Any] = {"pdf": "a.pdf", "page": 1, "id": "a1", "type": "present", "text": "word"}


def make(folder: Path, files: dict[str, list[dict[str, Any]]], pdfs: tuple[str, ...] = ("a.pdf",)) -> Path:
    folder.mkdir(exist_ok=True)
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
        ({"typo": 1}, "a test of type present has no field `typo`"),
        ({"type": "order", "text": ..., "before": "a"}, "a test of type order needs `after`"),
        ({"type": "presence"}, "unknown test type 'presence'"),
        ({"page": 0}, "pages count from 1"),
        ({"pdf": "../a.pdf"}, "no path of a .pdf below pdfs/"),
        ({"pdf": ""}, "`pdf` is empty"),
        ({"pdf": "b.pdf"}, "b.pdf is not in "),
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


anything = st.sampled_from(["", "[]", '["a",null]', "\x1e\x1eloupe:repeats\x1e[]"]) | st.text()


@given(st.lists(anything | st.none(), min_size=1), anything)
def test_repeats_travel_as_one_text_and_no_answer_can_pretend_to_be_several(texts: list[str | None], text: str) -> None:
    assert answers_of(Prediction(text=join_answers(texts), joined=True)) == texts
    assert answers_of(Prediction(text=text)) == [text]
    assert answers_of(Prediction(text=join_answers(texts))) == [join_answers(texts)]
    for spoiled in ("", "[]", "no list"):
        assert answers_of(Prediction(text=spoiled, joined=True)) == [spoiled]


def test_no_repeats_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="without an answer"):
        join_answers([])


def test_one_file_of_a_page_is_its_answer_and_several_are_its_repeats(tmp_path: Path) -> None:
    root = make(tmp_path / "set", {"t.jsonl": [PRESENT | {"text": "a"}]})
    folder = tmp_path / "candidate"
    folder.mkdir()
    forged = join_answers(["a", "a"])
    (folder / "a_pg1_repeat1.md").write_text(forged)
    [sample] = load(root, baseline="skip")

    def shares() -> list[float]:
        found = find_all("olmocr_bench", folder, lambda: [sample], [sample.id], [sample.id]).found[sample.id]
        stored = msgspec.json.decode(msgspec.json.encode(found), type=Prediction)
        return [fact.get("share", -1.0) for fact in score(sample, stored).details["tests"]]

    assert shares() == [-1.0]
    (folder / "a_pg1_repeat2.md").write_text("b")
    assert shares() == [0.5]
