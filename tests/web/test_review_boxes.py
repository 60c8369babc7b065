"""Marks on scans: an OCR engine that drafts tells where its lines stand, and `loupe review` marks the truth there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.runs.folder import RunFolder, claim
from loupe.runs.info import RunInfo
from loupe.types import Prediction
from loupe.web.phrases import page_text
from loupe.web.review import drafts as review_boxes
from loupe.web.review.drafts import FILE, PLACE, Boxes, keep_boxes
from tests.support.command_line import loupe
from tests.support.pages import LINES, draw_page
from tests.support.web.review_app import served

SEEN: list[tuple[str, float, float, float, float]] = [
    ("Invoice number 12345", 0.1, 0.1, 0.9, 0.2),
    ("Total 99.50", 0.1, 0.5, 0.65, 0.6),
]


def kept(folder: Path, engine: str, response: Any) -> Boxes:
    info = RunInfo(benchmark="b", benchmark_id="b", version="1", engine=engine, profile={})
    with claim(folder / engine, info) as run:
        run.write_info(info)
        row = msgspec.json.encode(Prediction(sample="a", text="x", response=response))
        run.predictions_file.write_bytes(row + b"\n")
    keep_boxes(folder, engine, RunFolder.open(folder / engine))
    return Boxes(folder)


def test_a_phrase_is_marked_where_the_engine_saw_it(tmp_path: Path) -> None:
    boxes = kept(tmp_path, "ocr", {"lines": SEEN})
    number, total, none = boxes.marks("a", ["12345", "TOTAL 99.50", "elsewhere"])
    (((left, top, right, bottom),),) = number
    assert (round(left, 2), top, round(right, 2), bottom) == (0.7, 0.1, 0.9, 0.2)
    assert [tuple(round(end, 2) for end in box) for box in total[0]] == [(0.1, 0.5, 0.65, 0.6)]
    assert none == []
    assert boxes.marks("b", ["12345"]) == [[]]


def test_who_drafts_again_replaces_its_lines_and_others_add_theirs(tmp_path: Path) -> None:
    boxes = kept(tmp_path, "one", {"lines": SEEN})
    assert boxes.marks("a", ["12345"]) != [[]]
    shutil.rmtree(tmp_path / "one")
    kept(tmp_path, "one", {"lines": [("nothing", 0.0, 0.0, 1.0, 1.0)]})
    assert boxes.marks("a", ["12345"]) == [[]]
    kept(tmp_path, "two", {"lines": SEEN})
    assert boxes.marks("a", ["12345"]) != [[]] and boxes.marks("a", ["nothing"]) != [[]]


@pytest.mark.parametrize("response", [None, {}, {"lines": "x"}, {"lines": [["a", 1]]}, {"lines": [[1, 0, 0, 1, 1]]}])
def test_an_engine_that_tells_no_places_leaves_no_file(tmp_path: Path, response: object) -> None:
    assert kept(tmp_path, "ocr", response).marks("a", ["x"]) == [[]]
    assert not (tmp_path / PLACE / FILE).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\n",
        b"{}\n",
        b"[" * 5000 + b"\n",
        b'{"sample": "a", "engine": "e", "lines": [["x", 1e999, 0, 1, 1]]}\n',
        b'{"sample": "a", "engine": "e", "lines": [["' + b"x" * 100_000 + b'", -5, 0, 7, 1]]}\n',
    ],
)
def test_what_stands_in_the_file_is_anybodys(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PLACE).mkdir()
    (tmp_path / PLACE / FILE).write_bytes(content)
    for places in Boxes(tmp_path).marks("a", ["xx", "y"]):
        assert all(0 <= end <= 1 for boxes in places for box in boxes for end in box)


def test_a_file_of_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = kept(tmp_path, "ocr", {"lines": SEEN})
    monkeypatch.setattr("loupe.web.review.drafts._LARGEST", 10)
    assert boxes.marks("a", ["12345"]) == [[]]


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    kept(tmp_path, "ocr", {"lines": SEEN})
    (tmp_path / "other" / PLACE).mkdir(parents=True)
    (tmp_path / "other" / PLACE / FILE).symlink_to(tmp_path / PLACE / FILE)
    assert Boxes(tmp_path / "other").marks("a", ["12345"]) == [[]]


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_scans_that_tesseract_drafted_have_marks_in_review(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    draw_page(folder / "page.png")
    (folder / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    row = {"id": "a", "image": "page.png", "reference": None, "truth": {"status": "draft"}}
    (folder / "samples.jsonl").write_text(json.dumps(row) + "\n")
    drafted = loupe("draft", "scans", "-e", "tesseract", cwd=tmp_path)
    assert drafted.returncode == 0, drafted.stderr
    with served(folder) as server:
        marks = server.get("/marks/1")["marks"]
    (places,) = marks.values()
    boxes = [box for place in places for box in place]
    assert len(boxes) == len(LINES), "every line of the text has its mark"
    assert all(0 < left < right < 1 and 0 < top < bottom < 1 for left, top, right, bottom in boxes)


def test_of_many_engines_the_last_ones_count_and_no_more_is_laid_out_than_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / PLACE
    place.mkdir()
    box = (0.1, 0.1, 0.9, 0.2, 1.0)
    rows = [{"sample": "a", "engine": f"e{n}", "lines": [[f"number {n:03}", *box]]} for n in range(150)]
    (place / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    laid_out = []
    monkeypatch.setattr(review_boxes, "page_text", lambda found: laid_out.append(1) or page_text(found))
    assert Boxes(tmp_path).marks("a", ["number 149"])[0]
    assert len(laid_out) == 1
    assert Boxes(tmp_path).marks("a", ["nowhere to be seen"]) == [[]]
    assert len(laid_out) <= 1 + 8
