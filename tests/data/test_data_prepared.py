"""The prepared form: written from any benchmark, read back sample by sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from loupe.data.prepared import METADATA, is_prepared, read, write
from loupe.errors import DatasetError
from loupe.types import Sample


def page(path: Path, size: tuple[int, int] = (40, 20), mode: str = "RGB") -> Path:
    Image.new(mode, size).save(path)
    return path


def kind_of(path: Path) -> tuple[str | None, str, tuple[int, int]]:
    with Image.open(path) as image:
        return image.format, image.mode, image.size


def test_samples_come_back_with_truth_question_tags_and_image(tmp_path: Path) -> None:
    first = page(tmp_path / "a.png", (40, 20))
    second = page(tmp_path / "b.png", (30, 50), "LA")
    samples = [
        Sample(id="x/1", images=(first,), truth=["3", "three"], prompt="How many?", tags={"category": "c"}),
        Sample(id="\u00e4", images=(second,), truth={"total": "1.0"}, group="doc"),
    ]
    assert write(samples, tmp_path / "out") == 2
    rows = list(read(tmp_path / "out"))
    assert is_prepared(tmp_path / "out")
    assert [(row.sample_id, row.ground_truth) for row in rows] == [
        ("x/1", ["3", "three"]),
        ("\u00e4", {"total": "1.0"}),
    ]
    assert rows[0].metadata == {"prompt": "How many?", "tags": {"category": "c"}}
    assert rows[1].metadata == {"group": "doc"}
    assert [row.image for row in rows] == [tmp_path / "out/images/00000.jpg", tmp_path / "out/images/00001.jpg"]
    assert [kind_of(row.image) for row in rows] == [("JPEG", "RGB", (40, 20)), ("JPEG", "RGB", (30, 50))]


def test_the_file_is_the_one_that_the_request_describes(tmp_path: Path) -> None:
    write([Sample(id="s", images=(page(tmp_path / "a.png"),), truth="t")], tmp_path / "out")
    (line,) = (tmp_path / "out" / METADATA).read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"idx": 0, "sample_id": "s", "ground_truth": "t", "metadata": {}}
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")) == [
        "images/00000.jpg",
        METADATA,
    ]


def test_a_row_unpacks_as_four_values(tmp_path: Path) -> None:
    write([Sample(id="s", images=(page(tmp_path / "a.png"),), truth="t")], tmp_path / "out")
    ((ident, truth, metadata, image),) = read(tmp_path / "out")
    assert (ident, truth, metadata, image.name) == ("s", "t", {}, "00000.jpg")


def test_further_pages_of_a_sample_are_numbered(tmp_path: Path) -> None:
    pages = page(tmp_path / "a.png"), page(tmp_path / "b.png")
    write([Sample(id="s", images=pages, truth="t")], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out/images").iterdir()) == ["00000.jpg", "00000_2.jpg"]
    assert next(read(tmp_path / "out")).metadata == {"pages": 2}


def test_a_page_that_cannot_be_read_leaves_no_prepared_form(tmp_path: Path) -> None:
    samples = [Sample(id="s", images=(page(tmp_path / "a.png"),)), Sample(id="t", images=(tmp_path / "none.png",))]
    with pytest.raises(DatasetError, match=r"none\.png"):
        write(samples, tmp_path / "out")
    assert not is_prepared(tmp_path / "out")
    page(tmp_path / "none.png")
    assert write(samples, tmp_path / "out") == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["images", METADATA]


def test_a_folder_with_files_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DatasetError, match="is not empty"):
        write([], tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ("[]", "line 2: not an object"),
        ('{"idx": 1}', "line 2: no 'ground_truth'"),
        ('{"idx": -1, "ground_truth": ""}', "idx is -1"),
        ('{"idx": true, "ground_truth": ""}', "idx is True"),
        ('{"idx": 1, "ground_truth": "", "metadata": []}', "metadata is not an object"),
    ],
)
def test_lines_that_are_not_in_the_form_are_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / METADATA).write_text('{"idx": 0, "ground_truth": "a"}\n' + line + "\n")
    rows = read(tmp_path)
    assert next(rows).sample_id == "0"
    with pytest.raises(DatasetError) as caught:
        next(rows)
    assert said in caught.value.message


def test_a_folder_without_the_form_is_named(tmp_path: Path) -> None:
    assert not is_prepared(tmp_path)
    with pytest.raises(DatasetError, match=r"metadata\.jsonl not found"):
        next(read(tmp_path))
