"""The texts of the cells of a table that has no partner in the ground truth (docs/protocols/omnidocbench.md#tables)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.metrics.teds.table_tree import TedsError

if TYPE_CHECKING:
    from bs4 import Tag

_MIDDLE_DOT = r"$\cdot$"


class Cell(NamedTuple):
    """The text of a cell, and whether it joins the match of texts: only a `td` with nothing but text does."""

    text: str
    joins: bool


class Cells(NamedTuple):
    """The cells that hold text, in their order; or the exception with which the table ends upstream's whole run."""

    found: Sequence[Cell] = ()
    upstream_error: str = ""


def cells_of(table: str) -> Cells:
    """The cells of a table; none where the parser gives up, or the table is beyond all measure (minutes upstream)."""
    try:
        cells = parse_html(table).find_all(["td", "th"])
    except TedsError as error:
        return Cells(upstream_error=error.upstream)
    return Cells([found for cell in cells if (found := _cell(cell))])


def _cell(cell: Tag) -> Cell | None:
    text = _only_text(cell)
    if text and cell.name == "td":
        return Cell(text.replace(_MIDDLE_DOT, "").strip(), joins=True)
    # The cells of a table within a cell speak for themselves.
    text = "" if cell.find(["td", "th"]) else cell.get_text(" ", strip=True)
    return Cell(text, joins=False) if text else None


def _only_text(cell: Tag) -> str:
    """BeautifulSoup's `.string` without its recursion: the text, if a chain of single children ends in one; or ""."""
    from bs4 import Tag
    from bs4.element import NavigableString

    node: object = cell
    while isinstance(node, Tag):
        node = node.contents[0] if len(node.contents) == 1 else None
    return str(node) if isinstance(node, NavigableString) else ""
