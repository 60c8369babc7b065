"""Prompts with the text and the positions of the PDF page in them ("anchored"), and olmOCR-Bench's profiles."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.benchmarks.olmocr_bench.dataset import PromptName, prompt_for
from loupe.data import extras
from loupe.engines.adapters.steps import STEPS, apply_adapters, check_adapters
from loupe.engines.chat.settings import Settings
from loupe.engines.pages.anchor_text import MARK, anchor_text
from loupe.engines.pages.page_reader import anchored_by
from loupe.engines.registry import load_profile
from loupe.errors import MissingToolError, PageError
from loupe.types import PdfPage
from tests.support.chat_server import in_thread
from tests.support.command_line import loupe
from tests.support.pages import draw_page, write_pdf
from tests.support.shared import shared

#: Digests of what upstream's own function gives after `random.seed(0)`, with pypdf 7.1.0 and ftfy 6.3.1.
UPSTREAM = {
    "blank_book_pg1.pdf#1": "6ff5ca1de4dc8855",
    "buildingnotes.pdf#1": "a772753a2a6b29b9",
    "discoverworld_crazy_table4.pdf#1": "f1ca77145f138953",
    "earnings.pdf#1": "a17bfa62095c624f",
    "lincoln_letter.pdf#1": "bad1ad3575875bb8",
    "math_2503_04086.pdf#1": "c49103dd1caff4bd",
    "mathfuncs.pdf#1": "0f9bfb258e799686",
    "mathfuncs_colswitch.pdf#1": "495a269b483504fe",
    "mattsnotes.pdf#1": "d7765efac5741b05",
    "mattsnotes.pdf#2": "842fd661e8436ed8",
    "mattsnotes.pdf#3": "6ae8833694d1411a",
    "multi_column_miss.pdf#1": "689d57af4d04a48f",
    "olmo2-pg4.pdf#1": "45ae9226082a82d7",
    "openstax_caculus_pg_273.pdf#1": "87bb74a957f4e295",
    "small_page_size.pdf#1": "540ec4c6cf6833f0",
    "test-graphical-text.pdf#1": "a4f29ac99a604901",
}
SIZE = "Page dimensions: 340.2x226.8\n"


@pytest.mark.parametrize("page", UPSTREAM)
def test_the_anchor_text_is_that_of_upstream(page: str) -> None:
    name, _, number = page.partition("#")
    text = anchor_text(PdfPage(shared("data/olmocr_bench/sample_data") / "pdfs" / name, int(number)))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == UPSTREAM[page]


def test_no_program_is_started_for_a_filter_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, started = tmp_path / "jbig2dec", tmp_path / "started"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>",
        "<</Filter/JBIG2Decode/Length 7>>stream\nhostile\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    page = tmp_path / "a.pdf"
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    page.write_text(f"%PDF-1.4\n{body}trailer\n<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF\n")
    code = "from pathlib import Path\nfrom loupe.engines.pages.anchor_text import anchor_text\n"
    code += f"from loupe.types import PdfPage\nanchor_text(PdfPage(Path({str(page)!r}), 1))"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "the text of page 1 cannot be read (DependencyError" in done.stderr
    assert not started.exists()


def test_texts_stand_with_their_places_and_are_escaped(tmp_path: Path) -> None:
    page = PdfPage(write_pdf(tmp_path / "a.pdf", r"Gross \[1\] total"))
    assert anchor_text(page).startswith(SIZE)
    assert r"\[1\]" in anchor_text(page)


def test_a_page_without_anything_is_its_size(tmp_path: Path) -> None:
    assert anchor_text(PdfPage(write_pdf(tmp_path / "a.pdf", "One", ""), 2)) == SIZE


def test_a_long_page_is_drawn_the_same_way_each_time(tmp_path: Path) -> None:
    page = PdfPage(write_pdf(tmp_path / "a.pdf", "#set text(size: 4pt)\n#lorem(900)"))
    random.seed(1)
    first = anchor_text(page)
    random.seed(2)
    assert anchor_text(page) == first
    assert 3500 < len(first) <= 4000


def test_a_picture_is_one_image_and_tells_nothing_of_a_text_layer(tmp_path: Path) -> None:
    assert anchor_text(draw_page(tmp_path / "a.png")) == "Page dimensions: 350.0x145.0\n[Image 0x0 to 350x145]\n"
    turned = PdfPage(write_pdf(tmp_path / "a.pdf", "Secret"), 1, "rotate90")
    assert anchor_text(turned).count("\n") == 2 and "Secret" not in anchor_text(turned)


def test_a_broken_file_is_the_error_of_its_page(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.4\n" + b"\xff" * 100)
    with pytest.raises(PageError, match="the text of page 1 cannot be read"):
        anchor_text(PdfPage(path))


def test_a_missing_package_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert anchored_by(["What stands there?"]) == ""
    assert anchored_by(["", f"a {MARK}"]).startswith("pypdf-")
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "ftfy" else object())
    with pytest.raises(MissingToolError, match=r"a prompt with \{anchor_text\} needs ftfy") as error:
        anchored_by([MARK])
    assert "anchors" in error.value.hint


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    write_pdf(folder / "a.pdf", "First", "Second")
    rows = [{"id": f"p{number}", "image": f"a.pdf#page={number}", "reference": "x"} for number in (1, 2)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "own"\nversion = "1"\ntask = "text"\n')
    return folder


def test_each_page_is_asked_with_its_own_text_and_the_run_says_so(tmp_path: Path) -> None:
    with in_thread("{prompt}") as server:
        ran = loupe("run", str(_folder(tmp_path)), "--base-url", server.url, "--prompt", f"Read.\n{MARK}", cwd=tmp_path)
        asked = sorted(request.prompt for request in server.requests if request.method == "POST")
    assert [prompt.splitlines()[:2] for prompt in asked] == [["Read.", SIZE.strip()]] * 2
    assert [prompt.splitlines()[2].partition("]")[2] for prompt in asked] == ["First", "Second"]
    assert "|anchor:pypdf-" in ran.stdout
    info = json.loads(next((tmp_path / "runs").glob("*/*/run.json")).read_text())
    assert info["defining"]["anchors"].startswith("pypdf-") and MARK in next(iter(info["prompts"].values()))


@pytest.mark.parametrize("name", ["full", "finetune"])
def test_the_anchored_prompts_of_the_benchmark_end_with_the_raw_text(name: PromptName) -> None:
    assert prompt_for(name).endswith("\nRAW_TEXT_START\n{anchor_text}\nRAW_TEXT_END")


# ---- profiles

PROMPTS: dict[str, PromptName] = {
    "olmocr": "finetune_v4_yaml",
    "olmocr-anchored": "finetune",
    "rolmocr": "rolmocr",
    "nanonets-ocr": "nanonets",
    "qwen-vl": "basic",
    "gemini": "full_no_document_anchoring",
}


@pytest.mark.parametrize("engine", PROMPTS)
def test_profiles_ask_as_upstreams_runners(engine: str) -> None:
    profile = load_profile(engine)[1]
    assert isinstance(profile, Settings)
    asked = profile.prompts.get("*") or profile.prompts["markdown"]
    assert asked == prompt_for(PROMPTS[engine])
    assert (profile.image, profile.version) == ("longest(1288)", f"{engine}/1")
    assert (profile.max_tokens or 0) >= 4096
    assert list(check_adapters(profile.adapters)) == profile.adapters
    assert all("@ f7cfe4c (2026-03-25)" in source for source in profile.sources)


def test_what_wraps_a_page_is_taken_away_by_the_adapters_of_the_profiles() -> None:
    def tidied(engine: str, answer: str) -> str:
        return apply_adapters(answer, load_profile(engine)[1].adapters)

    assert tidied("olmocr", "---\nprimary_language: en\nis_table: False\n---\nThe harbour") == "The harbour"
    assert tidied("olmocr-anchored", '```json\n{"is_table": false, "natural_text": "A\\nB"}\n```') == "A\nB"
    assert tidied("nanonets-ocr", "A <page_number>14</page_number>\n<watermark>DRAFT</watermark>") == "A \nDRAFT"


@pytest.mark.parametrize("text", ['{"natural_text": null, "is_table": false}', '{"natural_text":""}'])
def test_json_without_text_is_an_empty_page(text: str) -> None:
    assert STEPS["olmocr_json"](text) == ""


@pytest.mark.parametrize(
    "text", ['{"natural_text": "cut of', '{"natural_text": 3}', '{"text": "a"}', '["natural_text"]', "{" * 100_000, ""]
)
def test_any_other_answer_stays(text: str) -> None:
    assert STEPS["olmocr_json"](text) == text
