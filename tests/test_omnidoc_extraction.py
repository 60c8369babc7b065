"""The items of a page of OmniDocBench 1.5: every official case, what holds for any text, and hostile pages."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.omnidoc.bar_tables import bar_tables_to_html
from loupe.benchmarks.omnidoc.extraction import by_category, extract
from loupe.benchmarks.omnidoc.records import Item
from tests.shared import cases

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
