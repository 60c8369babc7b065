"""Reading order: hand-made layouts, properties, and real pages with known order."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.shared.placed_text import Quad, join_lines, join_pieces, page_text, reading_order
from tests.support.shared import shared

HEIGHT = 20.0


def line(left: float, top: float, width: float, height: float = HEIGHT) -> Quad:
    return [(left, top), (left + width, top), (left + width, top + height), (left, top + height)]


def column(left: float, top: float, rows: int, *, width: float = 400, pitch: float = 26) -> list[Quad]:
    """Ragged lines of prose; the last one is short."""
    widths = [width - 15 * (i % 3) for i in range(rows - 1)] + [width * 0.4]
    return [line(left, top + i * pitch, w) for i, w in enumerate(widths)]


def turned(quads: list[Quad], degrees: float) -> list[Quad]:
    a = math.radians(degrees)
    return [[(x * math.cos(a) - y * math.sin(a), x * math.sin(a) + y * math.cos(a)) for x, y in q] for q in quads]


def order_of_shuffled(quads: list[Quad]) -> list[int]:
    """Shuffle boxes that are in reading order, sort them again, and say where each came from."""
    places = list(range(len(quads)))
    random.Random(7).shuffle(places)
    return [places[i] for i in reading_order([quads[p] for p in places])]


PAGES = {
    "one column": column(100, 100, 12),
    "two columns": column(100, 100, 12) + column(560, 107, 12),
    "two columns on common lines": column(100, 100, 12) + column(560, 100, 12),
    "two columns set loosely": column(100, 100, 5, pitch=60) + column(560, 100, 5, pitch=60),
    "a narrow gutter": column(100, 100, 12) + column(515, 100, 12),
    "three columns": column(50, 100, 9, width=250) + column(340, 100, 9, width=250) + column(630, 100, 9, width=250),
    "a title over two columns": [line(150, 20, 700, 40), *column(100, 100, 12), *column(560, 103, 12)],
    "a full-width figure text between": [
        *column(100, 100, 6),
        *column(560, 100, 6),
        line(100, 300, 850),
        *column(100, 360, 6),
        *column(560, 364, 6),
    ],
    "running head and page number": [
        line(100, 20, 300),
        line(900, 20, 40),
        *column(100, 100, 12),
        *column(560, 100, 12),
        line(500, 500, 30),
    ],
    "the right column starts higher": column(100, 180, 9) + column(560, 100, 12),
    "a table read by rows": [line(x, y, 60) for y in range(100, 400, 30) for x in (100, 400, 700)],
    "a receipt": [q for i in range(8) for q in (line(100, 100 + 30 * i, 200), line(600, 102 + 30 * i, 60))],
    "a form": [q for i in range(6) for q in (line(100, 100 + 40 * i, 90), line(230, 101 + 40 * i, 300))],
    "a line in three pieces": [line(100, 100, 90), line(200, 103, 90), line(300, 98, 90), line(100, 130, 200)],
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_layout_is_read_as_a_person_reads_it(page: list[Quad]) -> None:
    assert order_of_shuffled(page) == list(range(len(page)))


@pytest.mark.parametrize("degrees", [-3, -1, 1, 3])
@pytest.mark.parametrize("name", ["two columns", "a title over two columns", "a receipt"])
def test_skew_does_not_change_the_order(name: str, degrees: float) -> None:
    page = turned(PAGES[name], degrees)
    assert order_of_shuffled(page) == list(range(len(page)))


def test_text_along_the_margin_is_read_last() -> None:
    page = [line(10, 200, 18, 300), *column(100, 100, 12)]
    assert reading_order(page) == [*range(1, 13), 0]


def test_no_boxes_are_no_text() -> None:
    assert reading_order([]) == []
    assert page_text([], []) == ""


boxes = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 3000), st.integers(1, 800), st.integers(1, 80)), max_size=40
)


@given(boxes)
def test_every_box_is_read_exactly_once(rectangles: list[tuple[int, int, int, int]]) -> None:
    quads = [line(*rectangle) for rectangle in rectangles]
    assert sorted(reading_order(quads)) == list(range(len(quads)))


@given(boxes, st.integers(-500, 500), st.sampled_from([0.5, 2.0, 4.0]))
def test_place_and_size_of_the_page_do_not_matter(
    rectangles: list[tuple[int, int, int, int]], shift: int, scale: float
) -> None:
    quads = [line(*rectangle) for rectangle in rectangles]
    moved = [[(scale * x + 64 * shift, scale * y) for x, y in quad] for quad in quads]
    assert reading_order(moved) == reading_order(quads)


@given(boxes)
def test_no_letter_is_lost_or_invented(rectangles: list[tuple[int, int, int, int]]) -> None:
    texts = [f"w{i}." for i in range(len(rectangles))]
    text = page_text([line(*rectangle) for rectangle in rectangles], texts)
    assert sorted(text.split()) == sorted(texts)


def test_a_paragraph_is_joined_and_the_next_one_set_apart() -> None:
    quads = [line(100, 100, 400), line(100, 126, 395), line(100, 152, 200), line(100, 200, 400), line(100, 226, 100)]
    texts = ["one two three four", "five six seven eight", "nine ten.", "Another para-", "graph."]
    assert page_text(quads, texts) == "one two three four five six seven eight nine ten.\n\nAnother paragraph."


def test_a_short_line_keeps_its_end() -> None:
    quads = [line(100, 100, 150), line(100, 126, 400), line(100, 152, 120)]
    assert page_text(quads, ["A short one", "A line that fills the whole width", "and end"]) == (
        "A short one\nA line that fills the whole width and end"
    )


def test_rows_of_a_table_stay_rows() -> None:
    quads = [q for i in range(3) for q in (line(100, 100 + 30 * i, 150), line(500, 100 + 30 * i, 60))]
    assert page_text(quads, ["Coffee", "3.50", "Tea", "2.80", "合計", "六百"]) == "Coffee 3.50\nTea 2.80\n合計 六百"


def test_chinese_is_joined_without_spaces_and_korean_with() -> None:
    assert join_lines("今天天气", "很好。") == "今天天气很好。"
    assert join_pieces("한국어", "문장") == "한국어 문장"
    assert join_pieces("中文", "word") == "中文 word"


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("an exam-", "ple", "an example"),
        ("from 1990-", "2000", "from 1990-2000"),
        ("Jean-", "Paul", "Jean-Paul"),
        ("a dash -", "here", "a dash - here"),
    ],
)
def test_a_hyphen_at_the_line_end_is_undone_only_inside_a_word(first: str, second: str, joined: str) -> None:
    assert join_lines(first, second) == joined


def test_two_columns_of_a_real_paper_are_read_one_after_the_other() -> None:
    """Boxes of the annotated text lines of an OmniDocBench page, shuffled, come back in the annotated order."""
    import json

    pages = json.loads(shared("data/omnidocbench/OmniDocBench_subset.json").read_text(encoding="utf-8"))
    checked = 0
    for page in pages:
        lines = _annotated_lines(page)
        if page["page_info"]["page_attribute"]["layout"] not in ("double_column", "three_column") or len(lines) < 20:
            continue
        found = [lines[i][0] for i in order_of_shuffled([quad for _, quad in lines])]
        pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1 :] if a != b]
        assert sum(a > b for a, b in pairs) <= 0.03 * len(pairs), page["page_info"]["image_path"]
        checked += 1
    assert checked >= 2


def _annotated_lines(page: dict[str, object]) -> list[tuple[int, Quad]]:
    """(order of the block, box) of every annotated text line."""
    lines = []
    for block in page["layout_dets"]:  # type: ignore[attr-defined]
        for part in block.get("line_with_spans") or []:
            if block.get("order") is not None and part["category_type"] == "text_span":
                flat = part["poly"]
                lines.append((block["order"], list(zip(flat[0::2], flat[1::2], strict=True))))
    return sorted(lines, key=lambda entry: entry[0])
