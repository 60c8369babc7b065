"""Real5-OmniDocBench: images of one condition with the ground truth of OmniDocBench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks.omnidocbench import load
from loupe.errors import DatasetError
from tests.support.omnidocbench.small_pages import WORDS, block, page

PAGES = [page(name, block(1, "text_block", text=WORDS)) for name in ("harbour.jpg", "weather.png", "sums.jpg")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("images", "Real5-OmniDocBench-Scanning", "Real5-OmniDocBench-Screen-Photography"):
        (tmp_path / name).mkdir()
    (tmp_path / "OmniDocBench.json").write_text(json.dumps(PAGES), encoding="utf-8")
    for name in ("images/harbour.jpg", "images/sums.jpg", "Real5-OmniDocBench-Scanning/harbour.jpg"):
        (tmp_path / name).touch()
    (tmp_path / "Real5-OmniDocBench-Scanning" / "weather.jpg").touch()
    return tmp_path


@pytest.mark.parametrize("place", ["", "OmniDocBench.json"])
def test_a_condition_has_images_and_a_tag_of_its_own(data: Path, place: str) -> None:
    plain, scanned = list(load(data / place)), list(load(data / place, condition="scanning"))
    folder = data / "Real5-OmniDocBench-Scanning"
    # The last one is missing there: it fails when it is read, and the clean page does not take its place.
    assert [each.images for each in scanned] == [
        (folder / name,) for name in ("harbour.jpg", "weather.jpg", "sums.jpg")
    ]
    assert [each.id for each in scanned] == [each.id for each in plain]
    assert [each.truth for each in scanned] == [each.truth for each in plain]
    assert {each.tags["condition"] for each in scanned} == {"scanning"}
    assert all("condition" not in each.tags for each in plain)


def test_hyphens_and_capitals_of_a_folder_do_not_matter(data: Path) -> None:
    (first, *_) = load(data, condition="screen-photography")
    assert first.images == (data / "Real5-OmniDocBench-Screen-Photography" / "harbour.jpg",)


def test_a_condition_without_its_folder_is_one_clear_line(data: Path) -> None:
    with pytest.raises(DatasetError, match="no folder of images under the condition 'skew'"):
        list(load(data, condition="skew"))
    (data / "old-skew").mkdir()
    (data / "Skew").mkdir()
    with pytest.raises(DatasetError, match="2 folders of images under the condition 'skew'"):
        list(load(data, condition="skew"))
