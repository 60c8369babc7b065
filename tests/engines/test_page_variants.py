"""Pages turned and made worse: the same picture each time, in the size that was asked for, and not for `pdf_text`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from PIL import Image, ImageChops

from loupe.data.pages import load_page, page_size
from loupe.data.variants import PageVariant
from loupe.types import PdfPage
from tests.support.command_line import loupe

HANDBOOK = Path(__file__).parents[2] / "src/loupe/benchmarks/sample_pages_data/handbook.pdf"
WORSE = ("skew", "blur", "jpeg", "noise", "scan")


def picture(variant: str, page: int = 1, path: Path = HANDBOOK) -> Image.Image:
    return load_page(PdfPage(path, page, variant), longest=600)


def difference(one: Image.Image, other: Image.Image) -> float:
    """Mean difference in levels of 255."""
    return float(np.asarray(ImageChops.difference(one, other), dtype=float).mean())


def test_every_variant_is_one_of_these() -> None:
    assert {"none", "rotate90", "rotate180", "rotate270", *WORSE} == set(get_args(PageVariant))


def test_quarter_turns_go_clockwise_and_lose_nothing() -> None:
    plain = picture("")
    assert plain.width < plain.height
    right = picture("rotate90")
    assert right.size == plain.size[::-1]
    # What was at the lower left is at the upper left after a turn to the right.
    assert (
        right.crop((0, 0, 80, 50)).tobytes()
        == plain.crop((0, plain.height - 80, 50, plain.height)).rotate(-90, expand=True).tobytes()
    )
    assert right.rotate(90, expand=True).tobytes() == plain.tobytes()
    assert picture("rotate270").rotate(-90, expand=True).tobytes() == plain.tobytes()
    assert picture("rotate180").rotate(180).tobytes() == plain.tobytes()


def test_sizes_are_known_without_drawing() -> None:
    for variant in ("", "rotate90", "skew"):
        source = PdfPage(HANDBOOK, 1, variant)
        assert page_size(source) == load_page(source).size


@pytest.mark.parametrize("variant", WORSE)
def test_a_page_is_made_worse_the_same_way_each_time(variant: str, tmp_path: Path) -> None:
    plain, worse = picture(""), picture(variant)
    assert worse.size == plain.size
    assert 0.2 < difference(plain, worse) < 30
    elsewhere = tmp_path / HANDBOOK.name
    elsewhere.write_bytes(HANDBOOK.read_bytes())
    assert picture(variant, path=elsewhere).tobytes() == worse.tobytes()


def test_angles_and_noise_differ_from_page_to_page(tmp_path: Path) -> None:
    renamed = tmp_path / "other.pdf"
    renamed.write_bytes(HANDBOOK.read_bytes())
    for variant in ("skew", "noise"):
        assert difference(picture(variant), picture(variant, path=renamed)) > 0.2


def test_a_variant_stands_in_the_signature_and_a_text_layer_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "pdfs").mkdir(parents=True)
    (data / "pdfs" / "handbook.pdf").write_bytes(HANDBOOK.read_bytes())
    test = {"pdf": "handbook.pdf", "page": 1, "id": "t", "type": "present", "text": "handbook"}
    (data / "facts.jsonl").write_text(json.dumps(test), encoding="utf-8")
    (tmp_path / "reader.py").write_text(
        "from loupe.data.pages import load_page\n\n"
        "def size(request):\n    return 'handbook {0} {1}'.format(*load_page(request.images[0], longest=500).size)\n"
    )
    words = ("run", "olmocr_bench", "--data", data, "-o", "variant=rotate90", "-e")
    done = loupe(*words, "python:reader.py:size", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "opt:variant=rotate90" in done.stdout
    [answers] = tmp_path.rglob("predictions.jsonl")
    text = json.loads(answers.read_text(encoding="utf-8").splitlines()[0])["text"]
    width, height = map(int, text.split()[1:])
    assert width == 500 > height
    refused = loupe(*words, "pdf_text", cwd=tmp_path)
    assert refused.returncode != 0
    assert "pdf_text reads the text layer, but the pages are pictures here (variant=rotate90)" in refused.stderr
