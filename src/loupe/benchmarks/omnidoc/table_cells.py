"""The texts of the cells of a table that has no partner in the ground truth (section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loupe.benchmarks.table_answers.soup import parse_html
from loupe.metrics.table_tree import TedsError

if TYPE_CHECKING:
    from bs4 import Tag

_MIDDLE_DOT = r"$\cdot$"


def cells_as_text(table: str) -> list[str]:
    """The text of each `td` that holds nothing but text, stripped, without middle dots; maybe empty.

    No text where the parser gives up or the table is beyond all measure; upstream would end, or take minutes.
    """
    try:
        cells = parse_html(table).find_all("td")
    except TedsError:
        return []
    texts = (_only_text(cell) for cell in cells)
    return [text.replace(_MIDDLE_DOT, "").strip() for text in texts if text]


def _only_text(cell: Tag) -> str:
    """BeautifulSoup's `.string` without its recursion: the text, if a chain of single children ends in one; or ""."""
    from bs4 import Tag
    from bs4.element import NavigableString

    node: object = cell
    while isinstance(node, Tag):
        node = node.contents[0] if len(node.contents) == 1 else None
    return str(node) if isinstance(node, NavigableString) else ""
