"""Curves over ladders in the report: what is drawn, where points lead, and that a stranger's result does no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from loupe.features.synth.ladders import ladders_of
from loupe.features.synth.pictures import Panel, panels
from loupe.report.collect import collect
from loupe.report.html import write_report
from loupe.results.groups import Group
from loupe.runs.folder import RunFolder
from loupe.stats import curves
from loupe.types import Measure, Result
from tests.support.report_browser import opened
from tests.support.report_runs import Toy, misread, toy_pages
from tests.support.web.states import ladders, rung

SVG = "{http://www.w3.org/2000/svg}"


def run_with(toy: Toy, name: str, stored: object, errors: int = 9) -> None:
    """A run of this engine whose result has these ladders."""
    folder = RunFolder.open(toy.run(name, {each.id: misread(each.truth, errors) for each in toy.samples}))
    result = folder.stored_result()
    assert result is not None
    folder.write_result(msgspec.structs.replace(result, figures={"ladders": stored}))


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Two engines that climbed the same ladders."""
    found = toy_pages(tmp_path_factory.mktemp("ladders"), 6)
    pages = [sample.id for sample in found.samples]
    run_with(found, "clear", ladders(pages))
    run_with(found, 'worse <b> & "co"', ladders(pages, worse=0.1), errors=30)
    return found


@pytest.fixture(scope="module")
def group(toy: Toy) -> Group:
    (found,) = collect(toy.runs)
    return found


def drawn(panel: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(panel.svg(lambda sample: f"?{sample}&x"))


def test_every_engine_has_a_curve_with_a_band_and_each_point_leads_to_its_page(group: Group) -> None:
    blur, size, words = panels(group)
    assert [panel.title for panel in (blur, size, words)] == ["degrade: bleed through", "legibility: size", "prior"]
    picture = drawn(blur)
    assert len(list(picture.iter(f"{SVG}polyline"))) == len(list(picture.iter(f"{SVG}polygon"))) == 2
    links = [each.attrib["href"] for each in picture.iter(f"{SVG}a")]
    assert links[:4] == links[4:] == [f"?book/page-{step:04}&x" for step in range(4)]
    titles = [each.text or "" for each in picture.iter(f"{SVG}title")]
    assert "clear, degrade: bleed through 1: 89.0 % [84.0 to 94.0], base pages: 4" in titles
    assert 'worse <b> & "co" 0: 99.0 %' in picture.attrib["aria-label"]


def test_better_is_up_and_harder_is_right(group: Group) -> None:
    for panel in panels(group):
        line = next(drawn(panel).iter(f"{SVG}polyline")).attrib["points"]
        places = [tuple(map(float, pair.split(","))) for pair in line.split()]
        assert places == sorted(places), "from left to right it goes down"


def test_what_was_read_off_is_told_in_words(group: Group) -> None:
    blur, size, words = (panel.curves[0].said for panel in panels(group))
    assert blur == (
        "area under the curve: 84.0 % [80.0 to 88.0]",
        "half of the accuracy is gone at no rung up to 3 (severity)",
    )
    assert size == ("5 % of characters are wrong at 7.5 [beyond to 8.25] (x-height in px)",)
    assert words == ("CER of the last rung less that of the first: 4.0 % [1.0 to 7.0]",)


def test_a_crossing_of_the_statistics_can_be_told() -> None:
    """The words follow the record that loupe.stats makes, whatever it says."""
    cer = Measure(name="cer", higher_is_better=False)
    for rates, says in (((0.0, 0.1), "1.5"), ((0.0, 0.0), "no rung up to 2"), ((0.2, 0.3), "every rung from 1 on")):
        rungs = [
            (str(base), place, (rate, 1.0)) for base in range(3) for place, rate in zip((1, 2), rates, strict=True)
        ]
        limit = msgspec.to_builtins(curves.limit(curves.curve(cer, rungs, (1, 2)), 0.05))
        stored = ladders([""] * 4)[1] | {"summary": {"limit": limit}}
        assert says in told(stored)


def told(stored: dict[str, Any]) -> str:
    from loupe.features.synth.pictures import _said

    (ladder,) = ladders_of(result_with([stored]))
    return _said(ladder)[0]


def result_with(stored: object) -> Result:
    return Result(
        benchmark="b", version="1", engine="e", signature="", headline="", measures={}, directions={}, units={},
        figures={"ladders": stored},
    )  # fmt: skip


def test_an_engine_that_lacks_a_rung_and_values_that_lack_an_interval_are_drawn(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 5)
    pages = [sample.id for sample in toy.samples]
    whole, part = ladders(pages)[0], ladders(pages)[0]
    part["points"] = [rung("0", 0, 0.9, [], half=None), rung("2", 2, None, []), rung("3", 3, 0.5, pages[:1])]
    run_with(toy, "whole", [whole])
    run_with(toy, "part", [part])
    (panel,) = panels(collect(toy.runs)[0])
    assert list(panel.rungs.values()) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    picture = drawn(panel)
    assert len(list(picture.iter(f"{SVG}circle")) + list(picture.iter(f"{SVG}rect"))) == 6
    other = next(curve for curve in panel.curves if curve.engine == "part")
    assert panel.words(other, "2") == "–" and panel.words(other, "0") == "90.0 %"


@pytest.mark.parametrize(
    "stored",
    [
        None, "x", 7, [1], [{}], {"a": 1}, [{"track": 1}],
        [ladders([""] * 4)[0] | {"points": []}],
        [ladders([""] * 4)[0] | {"points": [rung("0", 0, 1.0, [])]}],
        [ladders([""] * 4)[0] | {"axis": "x" * 5000}],
        [ladders([""] * 4)[0] | {"points": [rung(str(at), at, 0.5, []) for at in range(5000)]}],
        [ladders([""] * 4)[0] | {"points": [rung("a", 1e999, 0.5, []), rung("b", 1, 0.5, [])]}],
    ],
)  # fmt: skip
def test_what_is_no_ladder_is_left_out(stored: object) -> None:
    assert ladders_of(result_with(stored)) == []


def test_equal_rungs_and_a_summary_of_nonsense_break_nothing(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 4)
    odd = ladders([""] * 4)[0]
    odd["points"] = [rung("a", 1, -5.0, ["no such page"]), rung("b", 1, 5.0, [])]
    odd["summary"] = {"limit": "x", "area": [], "half_loss": {"where": 3}, "other": {"value": 1}}
    run_with(toy, "odd", [odd])
    (panel,) = panels(collect(toy.runs)[0])
    assert panel.curves[0].said == ()
    assert drawn(panel) is not None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9), st.booleans())
def test_everything_stays_within_the_picture(values: list[float], error: bool) -> None:
    stored = {"track": "t", "kind": "k", "measure": "cer" if error else "accuracy", "axis": "a",
              "points": [rung(f"rung number {at}", at, value, []) for at, value in enumerate(values)]}  # fmt: skip
    (ladder,) = ladders_of(result_with([stored]))
    from loupe.features.synth.pictures import _panel

    picture = drawn(_panel([(0, "engine", ladder)]))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for circle in picture.iter(f"{SVG}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width and 0 <= float(circle.attrib["cy"]) <= height
    for words in picture.iter(f"{SVG}text"):
        assert 0 <= float(words.attrib["x"]) <= width and float(words.attrib["y"]) <= height


@pytest.mark.browser
def test_a_point_opens_its_page_in_the_report(toy: Toy, browser: Browser, tmp_path: Path) -> None:
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert seen.page.locator(".ladders figure svg").count() == 3
        assert "worse <b>" in seen.text(".legend-curves")
        seen.page.locator(".ladders figure").first.locator("svg a").nth(2).click()
        seen.page.locator("#sample .pane").first.wait_for()
        assert "page-0002" in seen.page.url
    with opened(browser, tmp_path / "report.html", width=390, scheme="dark") as seen:
        seen.page.locator(".ladders details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        widths = seen.page.locator(".ladders > figure > svg").evaluate_all("all => all.map(each => each.clientWidth)")
        assert min(widths) > 330
        page = seen.page.locator(".ladders details a").first
        assert page.get_attribute("title") == "book/page-0000"


def test_a_report_without_ladders_has_no_heading_for_them(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 3)
    run_with(toy, "plain", [])
    write_report(toy.runs, tmp_path / "report.html")
    assert "ladders" not in (tmp_path / "report.html").read_text("utf-8").split("</style>")[1].split("<script")[0]
