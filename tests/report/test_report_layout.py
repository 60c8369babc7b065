"""Where engines saw the parts of a page: what is read of their answers, and the boxes in a real Chromium."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from loupe.engines.adapters.areas import Areas, areas_of
from loupe.report.html import write_report
from loupe.types import Prediction, Sample
from loupe.web.view.pages import sample_script
from tests.report.test_report_match import ATTACK, PAGES, score
from tests.support.report_browser import opened
from tests.support.report_runs import Toy, draw_page

HOSTILE: list[Any] = [
    None,
    "x",
    {"bbox_2d": [10**400, 0, 1, 1]},
    {"bbox_2d": [0, 0, math.inf, 1]},
    {"bbox_2d": [math.nan] * 4},
    {"bbox_2d": [5, 5, 5, 9]},
    {"bbox_2d": [True, 0, 9, 9]},
    {"bbox_2d": "0123"},
    {"bbox_2d": [0, 0, 10], "label": "x"},
]


def boxes(found: Areas | None) -> list[tuple[Any, ...]]:
    assert found is not None
    return [(area.label, *(round(side, 3) for side in area.box)) for area in found.areas]


@pytest.mark.parametrize(
    ("text", "response", "expected"),
    [
        (
            "",
            {"regions": [{"native_label": "doc_title", "label": "text", "bbox_2d": [10, 20, 500, 90], "score": 0.9}]},
            [("doc_title", 0.01, 0.02, 0.5, 0.09)],
        ),
        ("", {"regions": [[{"label": "text", "bbox_2d": [-5, 0, 2000, 90]}]]}, [("text", 0.0, 0.0, 1.0, 0.09)]),
        (
            "",
            {"lines": [["Total 9", 0.1, 0.2, 0.3, 0.4], ["b", 0, 0, 1, 1, 0.5]]},
            [("Total 9", 0.1, 0.2, 0.3, 0.4), ("b", 0, 0, 1, 1)],
        ),
        (
            "<|ref|>title<|/ref|><|det|>[[0, 0, 999, 99]]<|/det|>\n# A\n"
            "<|ref|>text<|/ref|><|det|>[[9, 9, 99, 99], [9, 199, 99, 299]]<|/det|>",
            None,
            [("title", 0, 0, 1, 0.099), ("text", 0.009, 0.009, 0.099, 0.099), ("text", 0.009, 0.199, 0.099, 0.299)],
        ),
        ("<|box_start|>100 200 300 400<|box_end|><|ref_start|>table<|ref_end|>", None, [("table", 0.1, 0.2, 0.3, 0.4)]),
        ('```json\n[{"bbox_2d": [100, 200, 300, 400], "label": "table"}]\n```', None, [("table", 0.1, 0.2, 0.3, 0.4)]),
        (
            '[{"bbox": [100, 200, 300, 400], "category": "Table"}, {"bbox": [1, 2, 30, 40], "category": "Te',
            None,
            [("Table", 100, 200, 300, 400)],
        ),
    ],
)
def test_areas_are_read_from_what_engines_write(text: str, response: Any, expected: list[Any]) -> None:
    assert boxes(areas_of(text, response)) == expected


def test_what_is_no_box_is_left_out_and_counted() -> None:
    found = areas_of("", {"regions": [*HOSTILE, {"bbox_2d": [0, 0, 9, 9], "label": 3, "score": "high"}]})
    assert found is not None and found.unusable == len(HOSTILE)
    assert boxes(found) == [("", 0.0, 0.0, 0.009, 0.009)]
    assert areas_of("plain text", None) is None and areas_of("", {"regions": "x", "lines": 3}) is None


@given(st.text(alphabet='{"bbox_2d":[0,1] }<|det|>ref/', max_size=400))
def test_any_answer_is_read_without_an_error(text: str) -> None:
    found = areas_of(text, None)
    assert found is None or all(math.isfinite(side) for area in found.areas for side in area.box)


@pytest.mark.parametrize(
    "text",
    [
        '{"bbox":[' * 120_000,
        '{"bbox":{"x":' * 80_000,
        "<|det|>" * 100_000,
        "<|ref|><|/ref|><|det|>" + "[1,1,1," * 200_000,
        "<|box_start|>" * 80_000,
        "<|box_start|>1 1 1 1<|box_end|>" * 60_000,
    ],
    ids=range(6),
)
def test_hostile_answers_cost_no_time(text: str) -> None:
    began = time.process_time()
    found = areas_of(text, None)
    assert found is None or len(found.areas) <= 2_000
    assert time.process_time() - began < 5


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with regions, one with lines, one in pixels; an engine whose labels attack, one that tells nothing."""
    root = tmp_path_factory.mktemp("layouts")
    samples = []
    for ident, text in (("a", "The harbour book"), ("b", "Seven boats")):
        draw_page(root / "toy" / f"{ident}.png", text)
        samples.append(Sample(id=ident, images=(root / "toy" / f"{ident}.png",), truth=text))
    toy = Toy(root=root / "toy", samples=samples)
    regions = [
        {"index": 0, "label": "text", "native_label": "doc_title", "bbox_2d": [60, 50, 700, 110], "score": 0.973},
        {"index": 1, "label": "table", "native_label": "table", "bbox_2d": [60, 200, 900, 500]},
        {"index": 2, "label": "text", "native_label": ATTACK, "bbox_2d": [60, 600, 900, 700], "score": 0.5},
    ]
    dots = json.dumps([{"bbox": [62, 88, 310, 200], "category": "Text", "text": "a"}])
    lines = [["The harbour book", 0.1, 0.05, 0.7, 0.1, 0.91]]
    toy.run("layouts", {"a": Prediction(sample="a", text="x", response={"regions": regions}), "b": dots})
    toy.run("lines", {"a": Prediction(sample="a", text="x" * 500, response={"lines": lines}), "b": "y"})
    toy.run("plain", {"a": "x" * 900, "b": "y"})
    write_report(toy.runs, root / "report.html", embed=True)
    return root / "report.html"


@pytest.mark.browser
def test_regions_are_drawn_with_order_label_and_confidence(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("a")
        seen.page.keyboard.press("7")
        assert seen.page.locator(".layout").count() == 2
        assert seen.page.locator(".layout").first.locator(".area").count() == 3
        first = seen.page.locator(".area").first
        assert first.get_attribute("title") == "1 · doc_title · 97 %"
        assert first.inner_text().split("\n") == ["1", "doc title", "97 %"]
        frame = seen.page.locator(".page-frame").first.bounding_box()
        box = first.bounding_box()
        assert frame and box and abs((box["x"] - frame["x"]) / frame["width"] - 0.06) < 0.01
        assert abs(box["height"] / frame["height"] - 0.06) < 0.01
        assert "k-table" in (seen.page.locator(".area").nth(1).get_attribute("class") or "")
        first.click()
        assert seen.text(".area-said") == "1 · doc_title · 97 %"
        assert "owned" not in seen.page.title() and ATTACK[:20] in (seen.page.locator(".area").nth(2).inner_text())
        assert seen.page.locator(".area.line").get_attribute("title") == "1 · The harbour book · 91 %"
        # Another view brings the page and the texts back.
        seen.page.keyboard.press("1")
        assert seen.page.locator(".sample-pictures img").is_visible() and seen.page.locator(".layout").count() == 0


@pytest.mark.browser
def test_boxes_in_pixels_go_by_the_size_of_the_page_and_others_have_no_layout(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("b")
        seen.page.keyboard.press("7")
        frame, box = (seen.page.locator(name).first.bounding_box() for name in (".page-frame", ".area"))
        assert frame and box
        assert abs(box["width"] / frame["width"] - 248 / 620) < 0.01
        assert abs((box["y"] - frame["y"]) / frame["height"] - 88 / 877) < 0.01


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_stands_beyond_the_edge_and_a_telephone_shows_the_order_alone(
    browser: Browser, report: Path, width: int
) -> None:
    with opened(browser, report, width=width, scheme="dark") as seen:
        seen.open_sample("a")
        seen.page.keyboard.press("7")
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert seen.page.locator(".area-label").first.is_visible() == (width > 640)
        assert seen.page.locator(".area-tag b").first.is_visible()


@pytest.mark.browser
def test_the_areas_of_the_ground_truth_stand_beside_those_of_the_engine(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "OmniDocBench.json").write_text(json.dumps(PAGES[:1]))
    draw_page(tmp_path / "data" / "images" / "harbour.png", "The harbour book")
    (tmp_path / "grounded").mkdir()
    marks = "<|ref|>title<|/ref|><|det|>[[60, 40, 930, 120]]<|/det|>\nThe harbour book"
    (tmp_path / "grounded" / "harbour.md").write_text(marks)
    score(tmp_path, "grounded", {"harbour": marks})
    write_report([tmp_path / "runs" / "grounded" / "omnidocbench"], tmp_path / "report.html", embed=True)
    with opened(browser, tmp_path / "report.html", after="#s=harbour") as seen:
        seen.page.locator("[data-mode=layout]").click()
        assert seen.page.locator(".layout strong").all_inner_texts() == ["Ground truth", "grounded"]
        assert [seen.page.locator(".layout").nth(place).locator(".area").count() for place in (0, 1)] == [6, 1]
        assert seen.page.locator(".area").first.get_attribute("title") == "1 · title"


def test_the_viewer_draws_layouts_too() -> None:
    assert "drawLayout" in sample_script()
