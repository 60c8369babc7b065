"""The items of a page of OmniDocBench 1.6: every official case, what holds for any text, and hostile pages."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench.answer_formulas import (
    as_formula,
    cell_texts,
    is_arithmetic,
    is_caption,
    is_description,
    is_formula_cell,
    looks_like_formula,
)
from loupe.benchmarks.omnidocbench.extraction import by_category, read_answer_rescuing, without_html_blocks
from loupe.benchmarks.omnidocbench.formula_normalization import squeezed
from loupe.benchmarks.omnidocbench.ground_truth import read_counted_ground_truth
from tests.omnidocbench.test_omnidoc_extraction import MARKS, as_official
from tests.support.shared import cases

STAGES = "oracles/omnidocbench_v16/stages"


@pytest.mark.parametrize("case", cases(f"{STAGES}/extract.jsonl"), ids=lambda case: case["id"])
def test_a_page_falls_into_the_official_items(case: dict[str, Any]) -> None:
    found = by_category(read_answer_rescuing(case["input"]["markdown"]).items)
    official = [(category, [*map(as_official, items)]) for category, items in found.items()]
    assert official == list(case["expected"]["items"].items())


@pytest.mark.parametrize("case", cases(f"{STAGES}/rescue.jsonl"), ids=lambda case: case["id"])
def test_a_text_is_taken_for_what_it_officially_is(case: dict[str, Any]) -> None:
    text = case["input"]["text"]
    assert case["expected"] == {
        "formula_like": looks_like_formula(text),
        "sanitized": as_formula(text),
        "table_cell": is_formula_cell(squeezed(text)),
        "image_description": is_description(text),
        "equation_caption": is_caption(text),
        "compound_segment": is_arithmetic(text),
        "html_fragment": without_html_blocks(text),
    }


def test_the_form_counts_what_was_rescued_and_dropped() -> None:
    answer = (
        "![1 + 2 = 3](a.png)\n\n$x$ and then the letter $y_1$ of words\n\n"
        "<table><tr><td>2 + 3 = 5</td></tr></table>\n\n4 + 5 = 9\n\n"
        "The image shows the line $z^2$ above it."
    )
    form = read_answer_rescuing(answer).form
    assert form.rescued == {"image_formula": 1, "table_formula_rescue": 1, "text_formula": 1}
    assert (form.short_inline_dropped, form.image_descriptions) == (2, 1)


def test_texts_of_cells_within_cells_are_in_all_of_them() -> None:
    nested = "<td>1 + 2<table><tr><td>= 3</td></tr></table></td>"
    expected = ["1 + 2 = 3", "= 3"]
    assert cell_texts(f"<table><tr>{nested}</tr></table>") == expected  # the short way
    assert cell_texts(f"<table><tr>{nested}<br></tr></table>") == expected  # through the tree


def element(anno_id: int, **fields: Any) -> dict[str, Any]:
    return {"category_type": "text_block", "anno_id": anno_id, "text": f"t{anno_id}", "order": anno_id, **fields}


def texts_of(elements: list[dict[str, Any]], *pairs: tuple[int, int]) -> list[str]:
    relations = [
        {"source_anno_id": source, "target_anno_id": target, "relation_type": "truncated"} for source, target in pairs
    ]
    page = {"layout_dets": elements, "extra": {"relation": relations}}
    return [block.text for block in read_counted_ground_truth(page, "parity").blocks.get("text_block", ())]


def test_elements_to_be_ignored_are_in_no_block() -> None:
    assert texts_of([element(1), element(2, ignore=True), element(3)]) == ["t1", "t3"]


def test_pieces_that_hang_together_are_one_block_and_each_text_is_in_it_once() -> None:
    elements = [element(number) for number in (5, 1, 2, 3, 4)]
    assert texts_of(elements, (1, 2), (3, 4), (2, 3)) == ["t5", "t1t2t3t4"]


def test_a_block_with_a_piece_to_be_ignored_is_left_out() -> None:
    elements = [element(1), element(2, ignore=True), element(3), element(4)]
    assert texts_of(elements, (1, 2), (3, 4)) == ["t3t4"]


BITS = (
    *MARKS,
    *("1 + 2 = 3", "![1+2=3](a)", "$$(1) x$$", r"$$x \quad \text{where all values hold}$$", r"$$1=2 \quad 3=4$$", "→"),
    *(
        "The image shows $a$ and more words\n\n",
        "<div>",
        "</div>",
        "<td>",
        "</td>",
        "<br>",
        r"\xrightarrow{a}",
        "×",
        "③",
    ),
)


@given(st.lists(st.sampled_from(BITS), max_size=25).map("".join))
def test_items_of_any_answer_are_in_order_and_none_is_empty(answer: str) -> None:
    items = read_answer_rescuing(answer).items
    assert [item.start for item in items] == sorted(item.start for item in items)
    assert all(item.start <= item.end and (item.content or item.fine_category == "code") for item in items)


HOSTILE = (
    *(
        "$",
        "$x_1$",
        r"\(",
        r"\[",
        "$$",
        "$$(1) \\quad $$",
        r"$$1=2 \quad 3=4$$",
        r"\quad (",
        r"\quad \text{a",
        "![a](",
        "![",
    ),
    *("![1+2=3](a)", "<div>", "<div>a", "\n\n<div>a</div>", "<td>1+2=3", "<table><tr><td>1+2=3", "| 1+2=3 |\n", "|"),
    *("The image ", "\n \n", " ", "```a\n", "\\text ", "<table", "<!--"),
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_answer_is_read_soon(unit: str) -> None:
    for answer in (unit * (100_000 // len(unit)), "$$" + unit * (50_000 // len(unit)) + "$$"):
        begin = time.process_time()
        read_answer_rescuing(answer)
        assert time.process_time() - begin < 5


def test_cells_within_cells_are_read_soon() -> None:
    begin = time.process_time()
    for middle in ("", "<br>"):
        read_answer_rescuing("<table>" + "<td>1+2=3" * 5_000 + middle + "</td>" * 5_000 + "</table>")
    assert time.process_time() - begin < 5
