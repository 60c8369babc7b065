"""Pages in regions: all cases of the GLM-OCR SDK (glm_layout, glm_format), properties, and hostile answers.

Equal to the letter and to the pixel; no exceptions.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.features.layout.filtering import (
    LABELS,
    TASKS,
    Detection,
    category_of,
    crop_box,
    keep_areas,
    label_of,
    regions,
)
from loupe.features.layout.formatting import (
    PageRegion,
    ReadRegion,
    clean,
    format_page,
    format_pages,
    format_region,
    space_formulas,
    without_loop,
)
from loupe.metrics.repetition import Run, first_run
from tests.support.shared import cases


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", cases("oracles/engines/glm_layout.jsonl"), ids=name)
def test_the_areas_and_regions_are_those_of_the_sdk(case: dict[str, Any]) -> None:
    width, height = case["input"]["image_size"]
    detections = [Detection(**{**one, "box": tuple(one["box"])}) for one in case["input"]["detections"]]
    areas = keep_areas(detections, width, height)
    assert [
        {"label": area.label, "score": area.score, "coordinate": list(area.box), "order": area.order} for area in areas
    ] == case["expected"]["post"]
    assert [
        {"index": one.index, "label": one.label, "task_type": one.task, "bbox_2d": list(one.box)}
        for one in regions(areas, width, height)
    ] == case["expected"]["regions"]


@pytest.mark.parametrize("case", cases("oracles/engines/glm_format.jsonl"), ids=name)
def test_the_pages_are_those_of_the_sdk(case: dict[str, Any]) -> None:
    found = format_pages([[read_region(one) for one in page] for page in case["input"]["pages"]])
    assert found.markdown == case["expected"]["markdown"]
    assert [[one.record() for one in page] for page in found.pages] == case["expected"]["json"]


def read_region(one: dict[str, Any]) -> ReadRegion:
    return ReadRegion(
        index=one["index"],
        label=one["label"],
        content=one["content"],
        box=tuple(one["bbox_2d"]),
        skipped=one["task_type"] == "skip",
    )


def test_there_are_25_labels() -> None:
    assert (len(LABELS), LABELS[18], TASKS["reference"], label_of(99)) == (25, "reference", "abandon", "class_99")
    assert [category_of(label) for label in ("chart", "seal", "inline_formula", "footer")] == [
        "image",
        "text",
        "formula",
        "footer",
    ]


def page(*contents: tuple[str, str], left: int = 100) -> list[PageRegion]:
    box = (left, 0, 500, 50)
    return format_page([ReadRegion(index=n, label=one[0], content=one[1], box=box) for n, one in enumerate(contents)])


@pytest.mark.parametrize(
    ("regions", "expected"),
    [
        ([("display_formula", "a"), ("formula_number", "(1)")], ["$$\na \\tag{1}\n$$"]),
        ([("formula_number", "（2）"), ("display_formula", "a")], ["$$\na \\tag{2}\n$$"]),
        ([("formula_number", "(3)"), ("text", "a")], ["a"]),
        (
            [("text", "a beau-"), ("table", "<table></table>"), ("text", "tiful day")],
            ["a beautiful day", "<table></table>"],
        ),
        ([("text", "a beau-"), ("text", "Tiful day")], ["a beau-", "Tiful day"]),
        ([("text", "a beau-"), ("text", "Note"), ("text", "tiful day")], ["a beautiful day", "Note"]),
        ([("text", "a beau-"), ("text", "B beau-"), ("text", "tiful")], ["a beautiful", "B beautiful"]),
        ([("text", "page 1-"), ("text", "x")], ["page 1-", "x"]),
        ([("text", "- a"), ("text", "b"), ("text", "- c")], ["- a", "- b", "- c"]),
        ([("text", ""), ("text", " \n "), ("doc_title", "## A")], ["# A"]),
    ],
)
def test_regions_of_a_page_are_joined_like_this(regions: list[tuple[str, str]], expected: list[str]) -> None:
    found = page(*regions)
    assert [one.content for one in found] == expected
    assert [one.index for one in found] == list(range(len(found)))


def test_images_appear_if_their_crop_is_kept() -> None:
    box = (1, 2, 3, 4)
    pages = [
        [ReadRegion(index=0, label="image", content=None, box=box), ReadRegion(index=1, label="text", content="a")],
        [ReadRegion(index=0, label="chart", content=None, box=box, skipped=True)],
    ]
    assert format_pages(pages).markdown == "a\n\n"
    found = format_pages(pages, crops={(1, box)})
    assert found.markdown == "a\n\n![Image 1-0](imgs/cropped_page1_idx0.jpg)"
    assert found.pages[1][0].record()["image_path"] == "imgs/cropped_page1_idx0.jpg"


@pytest.mark.parametrize(
    ("label", "answer", "expected"),
    [
        ("text", "\\t\\ta\\t\\t", "a"),
        ("text", "1.5 metres", "1. 5 metres"),
        ("text", "1.5 metres\nwide", "1.5 metres\n\nwide"),
        ("text", "（1）one", "(1) one"),
        ("text", "a）one", "a) one"),
        ("text", "•  one", "- one"),
        ("text", "at.......b······c______d", "at...b···c___d"),
        ("text", "x$ a $y costs $5", "x $a$ y costs $5"),
        ("text", "```\ncode", "```\n\ncode\n\n```"),
        ("paragraph_title", "- ## A", "## A"),
        ("display_formula", "\\[ a \\]", "$$\na\n$$"),
        ("table", "<table>  .....  </table>", "<table>  .....  </table>"),
        ("table", "no table .....", "no table ..."),
    ],
)
def test_a_region_gets_the_form_of_its_label(label: str, answer: str, expected: str) -> None:
    assert format_region(answer, label) == expected


SDK_FORMULA = re.compile(r"(?<!\$)\$\s*((?:[^$\\]|\\.)+?)\s*\$(?!\$)")


def spaced_plainly(text: str) -> str:
    """The rule as a pattern, which takes quadratic time."""
    parts, done = [], 0
    for found in SDK_FORMULA.finditer(text):
        if found[1].strip():
            before = text[done : found.start()]
            parts += [before, " " * before[-1:].isalnum(), f"${found[1].strip()}$"]
            parts += [" " * text[found.end() : found.end() + 1].isalnum()]
            done = found.end()
    return "".join([*parts, text[done:]])


@given(st.lists(st.sampled_from(["$", "$$", "\\$", "\\", "a", " ", "\n", "é", "."]), max_size=16).map("".join))
def test_formulas_are_found_as_the_pattern_finds_them(text: str) -> None:
    assert space_formulas(text) == spaced_plainly(text)


SDK_RUN = {size: re.compile(rf"(.{{10,{size // 10}}}?)\1{{9,}}", re.DOTALL) for size in range(100, 700)}


@given(
    st.text("ab", max_size=40), st.text("ab\n", min_size=1, max_size=30), st.integers(1, 14), st.text("ab", max_size=40)
)
def test_the_first_loop_is_the_one_that_the_pattern_finds(before: str, unit: str, times: int, after: str) -> None:
    text = before + unit * times + after
    found = SDK_RUN[len(text)].search(text) if 100 <= len(text) < 700 else None
    run = first_run(text) if len(text) < 700 else None
    assert run == (Run(found.start(), len(found[1])) if found else None)


def test_of_equal_lines_the_first_of_three_ends_the_text() -> None:
    rows = ["first", "again", "other", *["again"] * 13, "last"]
    assert without_loop("\n".join(rows)) == "first\nagain\nother\nagain"
    assert without_loop("\n".join(["once", *["again"] * 8])) == "\n".join(["once", *["again"] * 8])


boxes = st.tuples(*[st.floats(-50, 1100)] * 4).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)
found_areas = st.lists(
    st.builds(Detection, class_id=st.integers(0, 26), score=st.floats(0, 1), box=boxes, order=st.integers(0, 40)),
    max_size=12,
)


@given(found_areas, st.integers(1, 1000), st.integers(1, 1000))
def test_areas_lie_on_the_page_in_order_and_boxes_in_its_thousandths(
    detections: list[Detection], width: int, height: int
) -> None:
    areas = keep_areas(detections, width, height)
    assert all(0 <= one.box[0] <= one.box[2] <= width and 0 <= one.box[1] <= one.box[3] <= height for one in areas)
    assert [one.order or 0 for one in areas] == sorted(one.order or 0 for one in areas)
    for number, one in enumerate(regions(areas, width, height)):
        assert one.index == number and one.task != "abandon"
        assert all(0 <= edge <= 1000 for edge in one.box)
        assert all(
            pixel <= edge for pixel, edge in zip(crop_box(one.box, width, height), [width, height] * 2, strict=True)
        )


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.text("ab-$(1)\n* #.", max_size=12)), max_size=8))
def test_a_page_is_numbered_and_never_grows_in_regions(contents: list[tuple[str, str]]) -> None:
    found = page(*contents)
    assert len(found) <= len(contents)
    assert [one.index for one in found] == list(range(len(found)))


MEGABYTE = 1_000_000
HOSTILE = {
    "tabs": "\\t" * (MEGABYTE // 4) + "x" + "\\t" * (MEGABYTE // 4) + "x",
    "dollar and spaces": "$" + " " * MEGABYTE,
    "escaped dollars": "\\$" * (MEGABYTE // 2),
    "dollars and escaped dollars": "$\\$" * (MEGABYTE // 3),
    "rulers": "._·" * (MEGABYTE // 3),
    "one letter": "a" * MEGABYTE,
    "a letter before": "x" * 99 + "b" + "a" * MEGABYTE,
    "newlines": "a\n" * (MEGABYTE // 2),
    "hyphens": "-" * MEGABYTE,
    "digits": "1" * MEGABYTE,
    "nearly loops": "".join(f"{n:05}" * 18 for n in range(MEGABYTE // 90)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_megabyte_takes_little_time(name: str) -> None:
    began = time.process_time()
    for label in ("text", "display_formula"):
        format_region(HOSTILE[name], label)
    page(("text", HOSTILE[name] + "-"), ("text", "a" + HOSTILE[name]))
    assert time.process_time() - began < 5.0
    assert clean("") == ""
