"""HTML tables of an answer: the outermost ones; names of tags in small letters only.

Protocol: docs/protocols/omnidocbench.md#html-tables.
"""

from __future__ import annotations

import re

from loupe.benchmarks.omnidocbench.extract.nesting import outermost
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.delimiters import blank

_BEGIN = re.compile("<table")
_END = re.compile("</table>")


def take_html_tables(text: str) -> tuple[list[Item], str]:
    """The outermost HTML tables, and the text with blanks in their places."""
    last_bracket = text.rfind(">")
    begins = [match.start() for match in _BEGIN.finditer(text) if match.end() <= last_bracket]
    ends = [match.start() for match in _END.finditer(text)]
    spans = outermost(begins, ends, step=len("</table>"))
    items = [Item(category="html_table", content=text[start:end], start=start, end=end) for start, end in spans]
    return items, blank(text, spans)
