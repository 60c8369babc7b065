"""Quality against speed and cost in the report: what is drawn, what is on the front, and that names do not overlap."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser

from loupe.report.collect import collect
from loupe.report.html import write_report
from loupe.report.svg_parts import Scale, crosses, overlap, place_labels
from loupe.report.tradeoffs import HEIGHT, Point, Tradeoff, heading, left_over, tradeoff_svg, tradeoffs
from loupe.runs.folder import RunFolder
from loupe.types import Estimate, Measure, Prediction
from tests.support.report_browser import opened
from tests.support.report_runs import misread, toy_pages

QUALITY = Measure(name="similarity")
DISTANCE = Measure(name="cer", higher_is_better=False)


def point(name: str, value: float, x: float) -> Point:
    return Point(name=name, quality=Estimate(value=value, low=value - 0.05, high=value + 0.05), x=x)


def drawn(points: list[Point], measure: Measure = QUALITY, *, cost: bool = False) -> Tradeoff:
    figure, title = ("cost_per_page", "cost per page, USD") if cost else ("pages_per_second", "pages per second")
    return Tradeoff(figure=figure, title=title, points=points, measure=measure, less_is_better=cost, currency="USD")


def test_on_the_front_is_who_is_not_beaten_in_both() -> None:
    points = [point("good", 0.9, 1), point("fast", 0.5, 9), point("beaten", 0.5, 8), point("twin", 0.9, 1)]
    assert {each.name for each in drawn(points).front()} == {"good", "twin", "fast"}
    assert {each.name for each in drawn(points, DISTANCE).front()} == {"fast"}
    assert {each.name for each in drawn(points, cost=True).front()} == {"good", "twin"}
    assert {each.name for each in drawn(points, DISTANCE, cost=True).front()} == {"good", "twin", "beaten"}


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.001, 1000)), min_size=1, max_size=12))
def test_every_point_is_on_the_front_or_beaten_by_one_that_is(values: list[tuple[float, float]]) -> None:
    picture = drawn([point(str(number), *value) for number, value in enumerate(values)])
    front = picture.front()
    assert front
    for each in picture.points:
        beaten = [one for one in front if one.value >= each.value and one.x >= each.x]
        assert each in front or beaten
    ElementTree.fromstring(tradeoff_svg(picture))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), st.booleans())
def test_every_interval_ends_within_the_plot_with_a_cap(values: list[tuple[float, float, float]], less: bool) -> None:
    points = [
        Point(name=str(number), quality=Estimate(value=value, low=low, high=high), x=1.0 + number)
        for number, (low, value, high) in enumerate(map(sorted, values))
    ]
    picture = ElementTree.fromstring(tradeoff_svg(drawn(points, DISTANCE if less else QUALITY)))
    bars = [path.attrib["d"] for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert len(bars) == len(points)
    for bar in bars:
        x, top, bottom, *caps = map(float, re.findall(r"-?[\d.]+", bar))
        assert 30 <= top <= bottom <= HEIGHT - 56, "nothing is cut off at the frame"
        assert caps == [round(x - 5, 1), top, 10, round(x - 5, 1), bottom, 10]


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 20))
def test_names_never_overlap(seed: int, count: int) -> None:
    dice = random.Random(seed)
    points = [(dice.gauss(300, 60), dice.gauss(200, 40)) for _ in range(count)]
    names = ["engine-" + "x" * dice.randrange(20) for _ in points]
    area = (60.0, 20.0, 580.0, 360.0)
    boxes = [place.box for place in place_labels(points, names, area) if place is not None]
    assert len(boxes) >= min(count, 8)
    for number, box in enumerate(boxes):
        assert area[0] <= box[0] and box[2] <= area[2] and area[1] <= box[1] and box[3] <= area[3]
        assert not any(overlap(box, other) for other in boxes[number + 1 :])


def test_a_name_lies_off_the_front_line_if_there_is_room() -> None:
    steps = [(100.0, 100.0), (260.0, 110.0), (420.0, 240.0)]
    places = place_labels(steps, ["engine"] * 3, (60.0, 20.0, 580.0, 360.0), steps)
    assert not any(place is None or crosses(piece, place.box) for place in places for piece in pairwise(steps))
    assert crosses(((0, 0), (9, 9)), (4, 4, 6, 6)) and crosses(((5, 0), (5, 9)), (4, 4, 6, 6))
    assert not crosses(((0, 0), (3, 3)), (4, 4, 6, 6)) and not crosses(((0, 7), (9, 7)), (4, 4, 6, 6))


def test_the_heading_names_what_is_drawn() -> None:
    speed, cost = drawn([point("a", 0.5, 1)]), drawn([point("a", 0.5, 1)], cost=True)
    assert [heading(each) for each in ([speed], [cost], [speed, cost])] == [
        "Quality and speed",
        "Quality and cost",
        "Quality, speed and cost",
    ]


@pytest.mark.parametrize("values", [(0.0, 5e-324), (5e-324, 5e-324), (0.0, 0.0), (0.3, 0.3 + 1e-16)])
def test_values_that_no_picture_tells_apart_have_ticks(values: tuple[float, float]) -> None:
    assert 1 <= len(Scale.around(values, 50, 550).ticks()) <= 20


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.booleans())
def test_ticks_are_round_and_stand_on_the_scale(one: float, other: float, log: bool) -> None:
    scale = Scale.around([one, other], 50, 550, log=log)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 20
    assert all(49.9 <= scale.place(tick) <= 550.1 for tick in ticks)
    assert 50 <= scale.place(one) <= 550


def test_the_report_draws_both_pictures_and_tells_failures(tmp_path: Path, browser: Browser) -> None:
    toy = toy_pages(tmp_path, 6)
    for name, rate, cost in (("one", 2.0, 0.01), ("two & <co>", 8.0, 0.002), ("euro", 4.0, 0.003), ("old", None, None)):
        answers = {each.id: Prediction(sample=each.id, text=misread(each.truth, len(name) * 9)) for each in toy.samples}
        if name == "one":
            failed = toy.samples[0].id
            answers[failed] = Prediction(sample=failed, outcome="timeout", error="late")
        folder = RunFolder.open(toy.run(name, answers))
        result = folder.stored_result()
        assert result is not None
        speed = {} if rate is None or cost is None else {"pages_per_second": rate, "cost_per_page": cost}
        currency = "" if cost is None else "EUR" if name == "euro" else "USD"
        folder.write_result(msgspec.structs.replace(result, speed=speed, currency=currency))
    (group,) = collect(toy.runs)
    speed_picture, cost_picture = tradeoffs(group)
    assert {each.name for each in speed_picture.points} == {"one", "two & <co>", "euro"}
    assert {each.name for each in cost_picture.points} == {"one", "two & <co>"}, "currencies are never mixed"
    assert "Unknown, or not in " in " ".join(left_over(cost_picture))
    assert {each.flaw for each in cost_picture.points} == {"", "1 of 6 failed"}
    label = ElementTree.fromstring(tradeoff_svg(cost_picture)).attrib["aria-label"]
    assert "0.002 USD" in label and "two & <co>" in label and "On the Pareto front" in label
    report = tmp_path / "report.html"
    write_report(toy.runs, report)
    with opened(browser, report) as seen:
        pictures = seen.page.locator(".tradeoffs figure:visible svg").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect()).map(box => [box.left, box.right, box.top])"
        )
        (left, _, top), (_, right, beside) = pictures
        table = seen.page.locator("main > section.group").evaluate("each => each.getBoundingClientRect().width")
        assert top == beside and right - left > 0.98 * table, "two pictures fill the width of the page"
    with opened(browser, report, width=420, scheme="dark") as seen:
        assert seen.page.locator(".tradeoffs figure:visible").count() == 2
        assert "(1 of 6 failed)" in seen.text(".tradeoffs")
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        figure = seen.page.locator(".tradeoffs figure:visible").first
        size, width = figure.evaluate(
            "each => [each.querySelector('svg').getBoundingClientRect().width, each.clientWidth]"
        )
        assert 350 < size <= width, "the whole picture, its letters as large as elsewhere"
        boxes = figure.locator("svg g > text").evaluate_all(
            "all => all.map(each => { const b = each.getBBox(); return [b.x, b.y, b.x + b.width, b.y + b.height] })"
        )
    assert len(boxes) == 3
    assert not any(overlap(one, two) for number, one in enumerate(boxes) for two in boxes[number + 1 :])


def test_one_run_alone_or_runs_of_other_data_are_not_drawn(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 2)
    paths = [toy.run(name, {each.id: each.truth for each in toy.samples}) for name in ("one", "two")]
    for number, path in enumerate(paths):
        folder = RunFolder.open(path)
        result = folder.stored_result()
        assert result is not None
        folder.write_result(msgspec.structs.replace(result, speed={"pages_per_second": 2.0 + number}))
        folder.write_info(msgspec.structs.replace(folder.info, data_digest=str(number)))
    groups = collect(paths)
    assert len(groups) == 2
    assert [tradeoffs(group) for group in groups] == [[], []]
