r"""Formulas in the cells of predicted tables, which OmniDocBench 1.6 matches like displayed ones.

Protocol: docs/protocols/omnidocbench_v16.md#table-cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from loupe.benchmarks.omnidocbench.extract.formula_rescue import as_formula, looks_like_formula
from loupe.benchmarks.omnidocbench.extract.margin_text import NUMBERS
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.formula_delimiters import squeezed
from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.metrics.table_markup import plain_texts_of
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import Tag

_LONGEST: Final = 120
_RELATION = re.compile(r"[=+\-×÷/≈]|\\(?:times|div|approx)")


class _OpenCell:
    """A cell whose end has not come: its texts, and how many characters they have without blanks."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.length = 0


def formulas_in_cells(tables: Iterable[Item]) -> list[Item]:
    """The formulas among the cells, as items one behind the other from where their table starts."""
    return [item for table in tables for item in _formulas_of(table)]


def _formulas_of(table: Item) -> list[Item]:
    items: list[Item] = []
    start = max(table.start, 0)
    for text in cell_texts(table.content) if _RELATION.search(table.content) else ():
        if is_formula_cell(text) and (content := as_formula(text)):
            end = start + max(len(text), 1)
            items.append(
                Item(
                    category="equation_isolated",
                    content=content,
                    start=start,
                    end=end,
                    fine_category="table_formula_rescue",
                )
            )
            start = end + 1
    return items


def cell_texts(table: str) -> Sequence[str]:
    """The texts of all cells in the order of their tags, long ones up to where they are too long.

    There are none where the parser gives up.
    """
    texts = plain_texts_of(("td", "th"), table)
    if texts is None:
        try:
            texts = _texts_in_tree(parse_html(table))
        except (TedsError, TableTooLargeError):
            return []
    return [squeezed(text) for text in texts]


def _texts_in_tree(tree: Tag) -> list[str]:
    """One walk for all cells; those within one another share texts, until they are too long anyway."""
    from bs4.element import CData, NavigableString, Tag

    cells: list[list[str]] = []
    too_short: list[_OpenCell] = []
    pending: list[object] = list(reversed(tree.contents))
    while pending:
        node = pending.pop()
        if isinstance(node, _OpenCell):
            if too_short and too_short[-1] is node:
                too_short.pop()
        elif isinstance(node, Tag):
            if node.name in ("td", "th"):
                cell = _OpenCell()
                cells.append(cell.texts)
                too_short.append(cell)
                pending.append(cell)
            pending += reversed(node.contents)
        elif type(node) in (NavigableString, CData) and (text := str(node)).strip():
            length = len("".join(text.split()))
            for cell in too_short:
                cell.texts.append(text)
                cell.length += length
            too_short = [cell for cell in too_short if cell.length <= _LONGEST]
    return [" ".join(texts) for texts in cells]


def is_formula_cell(text: str) -> bool:
    """Whether a short text relates numbers."""
    if not 0 < len(text) <= _LONGEST or not _RELATION.search(text) or not NUMBERS.search(text):
        return False
    return looks_like_formula(text)
