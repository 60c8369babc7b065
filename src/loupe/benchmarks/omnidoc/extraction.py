"""From a page's Markdown to items (section 4): a straight line, each step on the text that the step before left."""

from __future__ import annotations

from collections.abc import Iterable

from loupe.benchmarks.omnidoc.bar_tables import take_bar_tables
from loupe.benchmarks.omnidoc.formulas import take_formulas
from loupe.benchmarks.omnidoc.html_tables import take_html_tables
from loupe.benchmarks.omnidoc.latex_tables import take_latex_tables
from loupe.benchmarks.omnidoc.preparation import prepare
from loupe.benchmarks.omnidoc.records import Item
from loupe.benchmarks.omnidoc.text_blocks import paragraphs, take_code_blocks, unwrap_headings

_TAKES = (take_latex_tables, take_html_tables, take_formulas, take_bar_tables, take_code_blocks)


def extract(markdown: str) -> list[Item]:
    """The items of one page, sorted by where they start; those that start together in the order of the steps."""
    text = prepare(markdown)
    items: list[Item] = []
    for take in _TAKES:
        found, text = take(text)
        items += found
    items += paragraphs(unwrap_headings(text))
    return sorted(items, key=lambda item: item.start)


def by_category(items: Iterable[Item]) -> dict[str, list[Item]]:
    """The items grouped by category, the categories in the order of their first item (4, step 12)."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.category, []).append(item)
    return groups
