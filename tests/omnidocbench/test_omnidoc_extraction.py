"""The items of a page of OmniDocBench 1.5: every official case, what holds for any text, and hostile pages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.support.omnidocbench.plain_extraction as plain
from loupe.benchmarks.omnidocbench.answer_formulas import take_formulas
from loupe.benchmarks.omnidocbench.answer_tables import (
    bar_tables_to_html,
    stretches_of_bars,
    tabulars_with_the_character_behind,
    take_html_tables,
)
from loupe.benchmarks.omnidocbench.delimiters import with_replacements
from loupe.benchmarks.omnidocbench.extraction import by_category, extract, prepare, unwrap_headings, without_images
from loupe.benchmarks.omnidocbench.records import Item
from tests.support.shared import cases

STAGES = "oracles/omnidocbench/stages"


def as_official(item: Item) -> dict[str, Any]:
    row: dict[str, Any] = {
        "category_type": item.category,
        "position": [item.start, item.end],
        "content": item.content,
        "fine_category_type": item.fine_category,
        "language": item.language,
    }
    return {key: value for key, value in row.items() if value != ""}


@pytest.mark.parametrize("case", cases(f"{STAGES}/extract.jsonl"), ids=lambda case: case["id"])
def test_a_page_falls_into_the_official_items(case: dict[str, Any]) -> None:
    assert grouped(case["input"]["markdown"]) == list(case["expected"]["items"].items())


@pytest.mark.parametrize("case", cases(f"{STAGES}/md_table.jsonl"), ids=lambda case: case["id"])
def test_bar_tables_are_converted_as_officially(case: dict[str, Any]) -> None:
    assert bar_tables_to_html(case["input"]["markdown"]) == case["expected"]["html"]
    assert grouped(case["input"]["markdown"]) == list(case["expected"]["items"].items())


def grouped(markdown: str) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(category, [*map(as_official, items)]) for category, items in by_category(extract(markdown)).items()]


MARKS = (
    *("$", "$$", r"\[", r"\]", r"\(", r"\)", "|", "|\n", "| a | b |\n", "|---|\n", "```", "```py\n", "```html\n", "!["),
    *("](", ")", "<table", ">", "<table>", "</table>", "<table border=1>", r"\begin{table}", r"\end{table}", "<!--"),
    *(
        r"\begin{tabular}",
        r"\end{tabular}",
        r"\title",
        r"\text",
        r"\section",
        "*",
        "{",
        "}",
        "-->",
        "---",
        ":",
        "<thead>",
    ),
    *("a", "b ", " ", "    ", "____", "\n", "\n\n", "\r\n", "漢", "\\", "#", "</", "<th>", "</html>", "\u2028", "\x1c"),
)
marked = st.lists(st.sampled_from(MARKS), max_size=30).map("".join)


@given(marked)
def test_images_are_found_as_by_the_regex(text: str) -> None:
    assert without_images(text) == plain.images(text)


@given(marked)
def test_outermost_tables_are_found_as_by_the_stack_scan(text: str) -> None:
    tabulars = [(start, end) for start, end in plain.outermost(text, r"\\begin\{tabular\}", r"\\end\{tabular\}", 14)]
    assert tabulars_with_the_character_behind(text) == [(start, min(end, len(text))) for start, end in tabulars]
    items, rest = take_html_tables(text)
    assert [(item.start, item.end) for item in items] == plain.outermost(text, "<table[^>]*>", "</table>", 8)
    assert len(rest) == len(text)


@given(marked)
def test_formulas_are_found_as_by_the_regexes(text: str) -> None:
    items, rest = take_formulas(text)
    inline = "equation_inline"
    assert [(each.start, each.end, each.content, each.fine_category == inline) for each in items] == plain.formulas(
        text
    )
    assert len(rest) == len(text)


@given(marked)
def test_stretches_of_bars_are_replaced_as_if_looked_for_again(text: str) -> None:
    found = stretches_of_bars(text)
    assert with_replacements(text, found, ["<x>"] * len(found)) == plain.with_each_stretch_replaced(
        text, lambda stretch: "<x>"
    )


@given(marked)
def test_headings_are_unwrapped_as_by_the_regexes(text: str) -> None:
    assert unwrap_headings(text) == plain.headings(text)


@given(marked | st.text())
def test_any_page_falls_into_items_in_order_and_tables_are_where_they_say(text: str) -> None:
    items = extract(text)
    assert [item.start for item in items] == sorted(item.start for item in items)
    assert [
        item for group in by_category(items).values() for item in group if not item.content and item.language == ""
    ] == []
    prepared = prepare(text)
    for item in items:
        assert 0 <= item.start <= item.end
        if item.category == "latex_table":
            assert len(item.content) == item.end - item.start
            assert prepared[item.start : item.start + 7] == item.content[:7] == r"\begin{"


@pytest.mark.parametrize("unit", ["$", "|", "<table", r"\begin{tabular}", "`"])
def test_a_megabyte_of_one_mark_takes_seconds(unit: str) -> None:
    assert cpu_seconds(extract, unit * (1_000_000 // len(unit))) < 6


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "$$ ",
            "|\n",
            "| a |\n",
            "<table>",
            "<table>x</table> ",
            "```a\n",
            "![",
            "![](",
            r"\[",
            r"\(",
            r"\title{",
            r"\text ",
        ),
        *(
            r"\begin{tabular}x\end{tabular}",
            r"\begin{table}",
            r"\section{",
            "<!--|\n",
            "\n",
            "a\n\n",
            "<table>|\n",
            "$a$",
            " ",
        ),
    ],
)
def test_what_would_take_a_regex_hours_takes_seconds(unit: str) -> None:
    assert cpu_seconds(extract, unit * (200_000 // len(unit))) < 4


def cpu_seconds(function: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    function(text)
    return time.process_time() - started
