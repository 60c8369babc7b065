"""Tables with images inside: rows without their images, images from their place, and what is no such table."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loupe.benchmarks import get_benchmark
from loupe.data.packed import read_packed
from loupe.data.pages import load_page
from loupe.data.tsv import tsv_rows
from loupe.errors import DatasetError, PageError
from loupe.types import PackedImage
from tests.data.test_data_layouts import picture

NAMES = ["index", "image", "question", "answer", "split"]


def write(path: Path, rows: list[list[str]], *, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n") -> Path:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", quoting=quoting, lineterminator=end).writerows([NAMES, *rows])  # type: ignore[arg-type]
    path.write_bytes(text.getvalue().encode())
    return path


def encoded(width: int) -> str:
    return base64.b64encode(picture(width)).decode()


CELLS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\0"), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=5), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans()
)
def test_what_a_writer_of_tables_writes_is_read(
    tmp_path: Path, cells: list[tuple[str, str]], quoting: int, windows: bool
) -> None:
    rows = [[str(n), base64.b64encode(bytes([n]) * 60).decode(), *pair, "x"] for n, pair in enumerate(cells)]
    path = write(tmp_path / "a.tsv", rows, quoting=quoting, end="\r\n" if windows else "\n")
    found = list(tsv_rows(path, ("question", "answer")))
    assert [(row["question"], row["answer"]) for row in found] == cells
    assert [read_packed(row.image()) for row in found] == [bytes([n]) * 60 for n in range(len(cells))]


def test_a_row_may_share_the_image_of_another(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", [["7", encoded(50), "a?", "1", ""], ["9", "7", "b?", "2", ""]])
    first, second = tsv_rows(path, ())
    assert first.image() == second.image() and load_page(second.image()).size[0] == 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"index\tquestion\n", "has no column 'image'"),
        (b'image\tquestion\tanswer\nx\t"y\tz\n', "does not end"),
        (b'image\tquestion\tanswer\nx"\t"y""\tz\n', "does not end"),
        (b"image\tquestion\tanswer\nx\ty\n", "2 cells, where the first line names 3"),
        (b"image\tquestion\tanswer\nx\t\xff\ty\n", "not UTF-8"),
    ],
)
def test_what_is_no_table_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(DatasetError, match=said):
        list(tsv_rows(tmp_path / "a.tsv", ("question", "answer")))
    with pytest.raises(DatasetError, match=r"gone\.tsv"):
        list(tsv_rows(tmp_path / "gone.tsv", ()))


@pytest.mark.parametrize(
    "member", ["0+99999999999", "0/image", "-1+3", "", "1+" + "9" * 99, "0+5", "900+4", "9" * 18 + "+4"]
)
def test_an_image_that_is_not_there_is_the_error_of_its_page(tmp_path: Path, member: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"image\n****\n")
    with pytest.raises(PageError):
        read_packed(PackedImage(path, member))


def test_question_sets_are_read_from_the_tables_of_vlmevalkit(tmp_path: Path) -> None:
    write(
        tmp_path / "ChartQA_TEST.tsv",
        [["0", encoded(50), "a?", "[1, 2]", "test_human"], ["1", "0", "b?", "3", "test_augmented"]],
    )
    first, second = get_benchmark("chartqa").load(tmp_path)
    assert (first.id, first.tags, first.truth["answers"]) == ("00000", {"type": "test_human"}, "[1, 2]")
    assert first.group == second.group and second.tags == {"type": "test_augmented"}
    path = write(
        tmp_path / "other.tsv", [["0", encoded(50), "a?", "['1', \"o'2\"]", "form"], ["1", "0", "b?", "no", ""]]
    )
    first, second = get_benchmark("docvqa").load(path)
    assert first.truth["answers"] == ["1", "o'2"] and second.truth["answers"] == "no"
    assert first.tags == {"question_type": "form"} and second.tags == {}
