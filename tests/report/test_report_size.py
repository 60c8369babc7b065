"""The size budget of docs/report.md: at most 6 KB for a thumbnail and 25 KB for a sample that links its full image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image, ImageFilter

from loupe.report.html import write_report
from loupe.report.pictures import THUMBNAIL_LIMIT, make_thumbnail
from tests.support.report_runs import misread, toy_pages


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sixteen full A4 pages of 3,000 characters, read by two engines."""
    toy = toy_pages(tmp_path_factory.mktemp("toy"), 16, pages=4, characters=3_000, size=(1240, 1754))
    toy.run("good", {sample.id: misread(sample.truth, 83) for sample in toy.samples})
    toy.run("worse", {sample.id: misread(sample.truth, 19) for sample in toy.samples})
    write_report(toy.runs, toy.root / "report.html", carry=0)
    return (toy.root / "report.html").read_text(encoding="utf-8")


def test_every_sample_keeps_to_its_budget(report: str) -> None:
    parts = dict(re.findall(r'<script type="text/plain" id="([td]\d+)">([^<]*)</script>', report))
    assert len(parts) == 32
    assert max(len(parts[f"t{number}"]) for number in range(16)) <= 6_000
    assert max(len(parts[f"t{number}"]) + len(parts[f"d{number}"]) for number in range(16)) <= 25_000


def test_the_page_around_the_samples_is_small(report: str) -> None:
    assert len(re.sub(r'<script type="text/plain".*?</script>', "", report)) <= 100_000


def test_the_noisiest_page_keeps_the_thumbnail_budget(tmp_path: Path) -> None:
    noise = Image.effect_noise((1240, 1754), 120).convert("RGB").filter(ImageFilter.SHARPEN)
    noise.save(tmp_path / "noise.png")
    assert len(make_thumbnail(tmp_path / "noise.png").data) <= 4 * THUMBNAIL_LIMIT / 3 + 4


def test_a_long_repetitive_answer_costs_next_to_nothing(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 1)
    toy.run("looping", {sample.id: "again and again " * 60_000 for sample in toy.samples})
    write_report(toy.runs, tmp_path / "report.html", carry=0)
    assert (tmp_path / "report.html").stat().st_size <= 130_000
