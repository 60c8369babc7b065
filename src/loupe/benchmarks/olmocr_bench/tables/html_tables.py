"""Tables written as HTML, with the texts of their cells as BeautifulSoup's `get_text` gives them.

Protocol: docs/protocols/olmocr_bench.md#finding-tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loupe.benchmarks.shared.table_answers.html_grids import Count, parse_tables
from loupe.benchmarks.shared.table_answers.table_grid import Table

if TYPE_CHECKING:
    from bs4 import Tag


def parse_html_tables(markdown: str) -> list[Table]:
    """The tables in the order of their tags. TableReadError: upstream cannot read them either; TableLimitError."""
    return parse_tables(markdown, _text)


def _text(cell: Tag, count: Count) -> str:
    """What `get_text` gives, with `br` as a line end: no comments, scripts or styles.

    Upstream puts line ends into the tree, which takes the square of their number in time.
    """
    from bs4.element import CData, NavigableString, Tag

    parts = []
    for element in cell.descendants:
        count(1)
        if type(element) in (NavigableString, CData):
            parts.append(str(element))
            count(len(parts[-1]))
        elif isinstance(element, Tag) and element.name == "br":
            parts.append("\n")
            count(1)
    return "".join(parts).strip()
