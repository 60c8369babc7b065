"""The sample pages: whole, exact, small, and made by the script that is in the repository."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from PIL import Image

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.folders.own import check_folder
from loupe.benchmarks.folders.own.normalization import Comparison, prepare_text
from loupe.benchmarks.sample_pages import DATA
from loupe.data.pages import BLANK_INK, ink_fraction
from loupe.types import PdfPage, Prediction, Sample, Scored

SCRIPTS = Path(__file__).parents[2] / "script"
SAMPLES = list(get_benchmark("sample_pages").load(None))


def test_every_page_can_be_read_and_every_line_is_right() -> None:
    assert check_folder(DATA) == []


def test_the_data_is_small_enough_for_the_package() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 2_000_000


def test_every_file_belongs_to_a_sample() -> None:
    used = {image.path if isinstance(image, PdfPage) else image for sample in SAMPLES for image in sample.images}
    assert {path for path in DATA.iterdir() if path.suffix not in (".toml", ".jsonl")} == used


def test_there_are_thirteen_pages_and_all_seven_tasks() -> None:
    assert len({sample.images for sample in SAMPLES if sample.task in ("text", "markdown")}) == 13
    assert {sample.task for sample in SAMPLES} == {
        "text", "markdown", "table", "formula", "fields", "question", "class"
    }  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_the_reference_as_an_answer_scores_everything(sample: Sample) -> None:
    benchmark = get_benchmark("sample_pages")
    found = benchmark.score(sample, Prediction(text=benchmark.reference(sample)))
    scores = found.scores if isinstance(found, Scored) else found
    similarities = [score.counts for score in scores if score.measure not in ("cer", "wer")]
    assert set(similarities) == {(1.0, 1.0)}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_every_sample_has_the_tags_to_slice_by(sample: Sample) -> None:
    assert set(sample.tags) == {"kind", "language", "quality"}


def test_samples_of_the_same_page_are_drawn_together() -> None:
    groups: dict[object, set[str]] = {}
    for sample in SAMPLES:
        groups.setdefault(sample.images, set()).add(sample.group or sample.id)
    assert all(len(names) == 1 for names in groups.values())


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.task == "text"], ids=lambda sample: sample.id)
def test_only_the_blank_page_has_no_ink(sample: Sample) -> None:
    assert (ink_fraction(sample.images[0]) < BLANK_INK) == (sample.truth == "") == (sample.id == "blank")


def test_the_pdf_says_in_its_text_layer_what_its_references_say() -> None:
    import pypdfium2

    pages = [sample for sample in SAMPLES if sample.group == "handbook"]
    document = pypdfium2.PdfDocument(DATA / "handbook.pdf")
    found = [page.get_textpage().get_text_range() for page in document]
    document.close()
    as_is = Comparison()
    assert [prepare_text(text, as_is) for text in found] == [prepare_text(page.truth, as_is) for page in pages]


def test_the_rotated_page_is_stored_on_its_side() -> None:
    with Image.open(DATA / "rotated.png") as page:
        assert page.height > page.width


def test_the_receipt_adds_up() -> None:
    receipt = tomllib.loads((SCRIPTS / "sample_pages/content.toml").read_text(encoding="utf-8"))["receipt"]
    cents = {key: round(100 * float(receipt[key])) for key in ("subtotal", "tax", "total", "paid", "change")}
    assert sum(round(100 * float(price)) for *_, price in receipt["items"]) == cents["subtotal"]
    assert cents["subtotal"] + cents["tax"] == cents["total"] == cents["paid"] - cents["change"]


def test_the_shipped_lines_are_those_that_the_script_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("typst")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.delitem(sys.modules, "make_sample_pages", raising=False)
    import make_sample_pages  # type: ignore[import-not-found]

    shipped = (DATA / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in shipped] == make_sample_pages.samples()
    assert (DATA / "loupe.toml").read_text(encoding="utf-8") == make_sample_pages.CONFIG
