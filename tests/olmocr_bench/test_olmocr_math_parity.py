"""olmOCR-Bench, math tests: every case of the official evaluator, drawn by the real KaTeX in the real Chromium.

Outcomes: 300 cases, no exception; the one that is flagged `font_sensitive` too where the fonts are those of the oracle.
Drawings: texts and MathML to the letter; boxes to 1/64 pixel, the unit of Chromium's layout, with these fonts.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from loupe.benchmarks.olmocr_bench.page_facts import check_test
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import read_test
from loupe.benchmarks.shared.equations.rendering.chromium import (
    FONTS,
    TESTED_FONTS,
    browser_environment,
    font_files,
    fonts_identity,
)
from loupe.benchmarks.shared.equations.rendering.renderer import Renderer
from tests.support.math_renderer import fresh_renderer
from tests.support.olmocr_sample_cases import sample_parameters
from tests.support.shared import cases

pytestmark = pytest.mark.browser
CASES = [
    case
    for case in cases("oracles/olmocr_bench/cases.jsonl")
    if case["input"]["test"].get("type") == "math" and "load_error" not in case["expected"]
]
SAMPLES = sample_parameters(math=True)
FONT_SENSITIVE = {"sample-math_2503_04086_00"}


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renderer]:
    with fresh_renderer(tmp_path_factory.mktemp("drawings")) as found:
        yield found


def test_all_cases_are_here() -> None:
    assert len(CASES) == 288
    assert not any(case.get("font_sensitive") for case in CASES)
    if len(SAMPLES) > 1:
        assert {one.id for one in SAMPLES if one.values[0].get("font_sensitive")} == FONT_SENSITIVE
        assert len(SAMPLES) == 12


@pytest.mark.parametrize("case", [*(pytest.param(case, id=case["id"]) for case in CASES), *SAMPLES])
def test_a_math_test_has_the_official_outcome(case: dict[str, Any], renderer: Renderer) -> None:
    if case["id"] in FONT_SENSITIVE and not font_files():
        pytest.skip("SKIPPED: fonts-dejavu-core is not here, and the outcome of this case depends on fonts")
    outcome = check_test(PageText(case["input"]["md"]), read_test(case["input"]["test"]))
    expected = case["expected"]
    assert (outcome.passed, outcome.explanation) == (expected["passed"], expected["explanation_class"])


@pytest.mark.parametrize("case", cases("oracles/olmocr_bench/katex_render.jsonl"), ids=lambda case: case["id"])
def test_an_equation_is_drawn_as_officially(case: dict[str, Any], renderer: Renderer) -> None:
    looked_at, drawn = (renderer.draw([case["input"]["tex"]], measured=measured)[0] for measured in (False, True))
    expected = case["expected"]
    assert (bool(looked_at.error), bool(drawn.error)) == (expected["error"],) * 2
    if expected["error"]:
        return
    assert looked_at.mathml == drawn.mathml == expected["mathml"]
    assert looked_at.texts == drawn.texts == [span["text"] for span in expected["spans"]]
    if font_files():
        boxes = [[span[side] for side in ("x", "y", "width", "height")] for span in expected["spans"]]
        found = [[box.x, box.y, box.width, box.height] for box in drawn.boxes or ()]
        assert found == [pytest.approx(box, abs=1 / 64) for box in boxes]


def test_the_browser_sees_the_six_fonts_and_no_others_that_are_installed() -> None:
    program = shutil.which("fc-list")
    if program is None or not font_files():
        pytest.skip("SKIPPED: fontconfig or fonts-dejavu-core is not here")
    done = subprocess.run([program, ":", "file"], env=browser_environment(), capture_output=True, text=True, check=True)
    assert sorted(line.partition(":")[0].rpartition("/")[2] for line in done.stdout.splitlines()) == sorted(FONTS)


def test_slanted_letters_are_kerned_alike_with_and_without_more_fonts(renderer: Renderer) -> None:
    # With fonts-dejavu-extra installed, a browser that sees it sets these 37.90625 pixels wide.
    if fonts_identity() != TESTED_FONTS:
        pytest.skip("SKIPPED: DejaVu 2.37 (fonts-dejavu-core) is not here")
    (drawn,) = renderer.draw(["RT"], measured=True)
    assert [box.width for box in drawn.boxes or ()] == [35.796875]
