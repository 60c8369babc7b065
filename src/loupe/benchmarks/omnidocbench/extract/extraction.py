"""From a page's Markdown to items: a straight line, each step on the text that the step before left.

Protocol: docs/protocols/omnidocbench.md#extraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loupe.benchmarks.omnidocbench.extract.bar_tables import take_bar_tables
from loupe.benchmarks.omnidocbench.extract.formulas import take_formulas
from loupe.benchmarks.omnidocbench.extract.html_tables import take_html_tables
from loupe.benchmarks.omnidocbench.extract.latex_tables import take_latex_tables
from loupe.benchmarks.omnidocbench.extract.preparation import prepare
from loupe.benchmarks.omnidocbench.extract.text_blocks import (
    is_split_by_lines,
    paragraphs,
    take_code_blocks,
    unwrap_headings,
)
from loupe.benchmarks.omnidocbench.lint.bar_losses import bar_losses
from loupe.benchmarks.omnidocbench.records import FormFacts, Item

_Take: TypeAlias = Callable[[str], tuple[list[Item], str]]

#: What is taken out before any formula is looked for.
TABLES: Sequence[_Take] = (take_latex_tables, take_html_tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The items of a page, sorted by where they start (those that start together in the order of the steps).

    `form` says what the steps lost, or took for something else.
    """

    items: list[Item]
    form: FormFacts


def read_answer(markdown: str) -> Extraction:
    """Take an answer apart."""
    tables, text = take_each(prepare(markdown), TABLES)
    formulas, rest = take_formulas(text)
    inline = [text[item.start : item.end] for item in formulas if item.fine_category]
    bar_tables, left = take_bar_tables(rest)
    losses = bar_losses(rest, bar_tables)
    code, left = take_code_blocks(left)
    left = unwrap_headings(left)
    blocks = paragraphs(left)
    form = FormFacts(
        formulas_over_paragraphs=sum("\n\n" in formula for formula in inline),
        table_cells_lost=losses.cells,
        lines_above_tables_lost=losses.lines_above,
        stray_bars=losses.stray,
        split_by_lines=is_split_by_lines(left),
        text_blocks=len(blocks),
    )
    items = [*tables, *formulas, *bar_tables, *code, *blocks]
    return Extraction(items=sorted(items, key=lambda item: item.start), form=form)


def extract(markdown: str) -> list[Item]:
    """The items alone."""
    return read_answer(markdown).items


def take_each(text: str, takes: Iterable[_Take]) -> tuple[list[Item], str]:
    """What several steps take, and the text with blanks in the places."""
    items: list[Item] = []
    for take in takes:
        found, text = take(text)
        items += found
    return items, text


def by_category(items: Iterable[Item]) -> dict[str, list[Item]]:
    """The items grouped by category, the categories in the order of their first item (#item-order)."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.category, []).append(item)
    return groups
