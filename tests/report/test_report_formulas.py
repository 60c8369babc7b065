"""Formulas as the report draws them, in a real Chromium: unimer_test and OmniDocBench, scored by the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser

from loupe.explanation import Explanation, FormulaPair, Unit
from loupe.metrics.cdm.drawing import tex_setup
from loupe.metrics.cdm.drawing.drawings import draw_pairs
from loupe.report import drawn_formulas as drawn
from loupe.report.drawn_formulas import Formulas
from loupe.report.html import write_report
from tests.support.command_line import loupe
from tests.support.report_browser import opened
from tests.support.report_runs import draw_page
from tests.support.tex import need_tex

need_tex("unimernet", "omnidocbench")

TRUTHS = [r"y = 2 z + \sqrt { 3 x }", r"a ^ { 2 }", r"\frac { u } { v }", r"x _ { 1 } + 1"]
ANSWERS = [r"y=2x+\sqrt{3z}", r"\[ a^2 \]", r"\frac{u}{v", r"<img src=x onerror=alert(1)>"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("formulas")
    _score(root, "unimer_test", root / "data", {f"spe_{number:07d}.txt": text for number, text in enumerate(ANSWERS)})
    _score(root, "omnidocbench@1.5", root / "pages", {"sums.md": "A line of text.\n\n$$ a = b + d $$\n"})
    runs = [root / "runs" / name / benchmark for name, benchmark in (("u", "unimer_test"), ("o", "omnidocbench"))]
    write_report(runs, root / "report.html")
    return root / "report.html"


def _score(root: Path, benchmark: str, data: Path, answers: dict[str, str]) -> None:
    if benchmark == "unimer_test":
        for subset in ("spe", "cpe", "sce", "hwe"):
            texts = TRUTHS if subset == "spe" else ["x"]
            (data / "UniMER-Test" / subset).mkdir(parents=True)
            (data / "UniMER-Test" / f"{subset}.txt").write_text("\n".join(texts))
            for number in range(len(texts)):
                Image.new("L", (60, 20), 255).save(data / "UniMER-Test" / subset / f"{number:07d}.png")
    else:
        blocks = [
            {"category_type": "text_block", "text": "A line of text.", "order": 1},
            {"category_type": "equation_isolated", "latex": "$$a = b + c$$", "order": 2},
        ]
        for number, block in enumerate(blocks):
            block |= {
                "anno_id": number,
                "poly": [40, 90 * number, 580, 90 * number, 580, 90 * number + 70, 40, 90 * number + 70],
            }
        info = {"image_path": "sums.png", "width": 620, "height": 877, "page_attribute": {}}
        page = {"page_info": info, "layout_dets": blocks, "extra": {"relation": []}}
        draw_page(data / "images" / "sums.png", "A line of text.")
        (data / "OmniDocBench.json").write_text(json.dumps([page]))
    folder = root / ("u" if benchmark == "unimer_test" else "o")
    folder.mkdir()
    for name, text in answers.items():
        (folder / name).write_text(text, encoding="utf-8")
    options = ["-o", "subset=spe"] if benchmark == "unimer_test" else []
    done = loupe("score", benchmark, folder, "--data", data, "--name", folder.name, "-j", "1", *options, cwd=root)
    assert done.returncode == 0, done.stderr


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_has_no_counterpart_is_marked_and_the_rest_is_linked(browser: Browser, report: Path, scheme: Any) -> None:
    with opened(browser, report, scheme=scheme, after="#s=spe_0000000") as seen:
        page = seen.page
        page.locator(".drawn-frame").nth(1).wait_for()
        assert [each.inner_text() for each in page.locator(".drawn figcaption").all()] == [
            "Ground truth · 6 of 8 characters matched",
            "Answer · 6 of 8 characters matched",
        ]
        lost = page.locator(".drawn rect.lost title").all_text_contents()
        why = "is on both sides, but out of place: it does not fit the shift and scale of the others"
        assert sorted(lost) == [f"x {why}"] * 2 + [f"z {why}"] * 2
        assert seen.text(".drawn-reasons") == f"z {why}; x {why}."
        page.locator(".drawn").nth(1).locator("rect.found", has_text="=").hover(force=True)
        assert page.locator(".drawn rect.lit").count() == 2
        assert page.locator(".formula-diff del").all_inner_texts() == ["2 missing", "z ", "x "]
        assert "spaces do not count" in seen.text(".formula-diff")
        sizes = page.locator(".drawn img").evaluate_all("all => all.map((one) => one.naturalWidth)")
        assert min(sizes) > 50


@pytest.mark.browser
def test_a_side_that_is_not_drawn_says_why_and_an_exact_pair_is_all_blue(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=spe_0000002") as seen:
        seen.page.locator(".drawn").nth(1).wait_for()
        assert seen.page.locator(".drawn img").count() == 1
        assert "Not drawn: no page" in seen.text(".drawings")
        seen.page.keyboard.press("k")
        seen.page.locator(".drawn-frame").nth(1).wait_for()
        assert seen.page.locator("rect.lost").count() == 0 and "No difference in LaTeX" in seen.text(".formula-diff")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1440


@pytest.mark.browser
def test_a_hostile_formula_is_drawn_and_shown_as_text(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=spe_0000003") as seen:
        seen.page.locator(".drawn-frame").nth(1).wait_for()
        assert "o n e r r o r" in seen.text(".formula-diff") and seen.page.locator(".formula-diff img").count() == 0


@pytest.mark.browser
def test_a_formula_on_a_page_of_omnidocbench_is_drawn_in_its_block(browser: Browser, report: Path) -> None:
    # The first benchmark of this report has no such sample, and the address names none.
    with opened(browser, report, width=390, after="#s=sums") as seen:
        seen.page.locator(".drawn-frame").nth(1).wait_for()
        row = seen.page.locator(".unit", has=seen.page.locator(".drawn")).first
        assert re.search(r"CDM F1 80\.0 %, 1 edit", row.inner_text())
        assert row.locator("rect.lost title").all_text_contents() == [
            "c stands where the other side has d",
            "d stands where the other side has c",
        ]
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def pair(number: int, f1: float | None, **failures: str) -> FormulaPair:
    return FormulaPair(prediction=f"x + {number}", reference="x + 1", profile="unimernet", f1=f1, **failures)


def noted(*pairs: FormulaPair) -> Formulas:
    found = Formulas()
    for one in pairs:
        unit = Unit(element="formula", regions=(), reference="", formulas=one)
        found.add(0, Explanation(units=(unit,)))
    return found


def test_of_many_formulas_those_are_drawn_that_show_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "PAIRS", 3)
    monkeypatch.setattr(drawn, "CHARACTERS", 2_500)
    exact, broken = pair(1, 1.0), pair(2, 0.0, prediction_failure="no page")
    wrong = [pair(3 + number, 0.9 - number / 10) for number in range(4)]
    found = noted(exact, *wrong, broken, pair(99, None, prediction_failure="CDM needs TeX"))
    blocks = list(found.blocks())
    # The third of the three chosen ones has no room any more.
    assert [key for key, _ in blocks] == [one.key for one in reversed(wrong[2:])]
    assert sum(len(payload) for _, payload in blocks) <= 2_500
    assert found.summary() == {"runs": {0: [2, 5]}, "note": ""}


def test_a_missing_tex_is_a_word_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tex_setup.shutil, "which", lambda name: None)
    tex_setup._tools.cache_clear()
    try:
        packed, note = drawn._packed([("k", pair(1, 0.5))])
    finally:
        tex_setup._tools.cache_clear()
    assert packed == [] and "TeX is missing here (pdflatex" in note


def test_a_picture_is_bounded_however_long_the_formula() -> None:
    (one,) = draw_pairs([("x + y ^ { z } = " * 150, "x")], profile="unimernet")
    assert 0 < len(one.prediction.picture) <= 24_000
    assert one.prediction.size[0] > 2_000
