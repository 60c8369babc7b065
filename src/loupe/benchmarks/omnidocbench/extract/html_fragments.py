r"""Pieces of text that an answer wrote as HTML blocks; OmniDocBench 1.6 reads their text.

Protocol: docs/protocols/omnidocbench_v16.md#html-fragments.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

_BLOCK = re.compile(r"<di[vr]\b", re.IGNORECASE)
_TABLE = re.compile("<table", re.IGNORECASE)
_UNSEEN: Final = frozenset(("style", "script"))
_UNWRAPPED: Final = frozenset(("span", "font", "b", "strong", "i", "em", "u", "a", "sup", "sub"))
_BLOCKS: Final = frozenset(("div", "dir", "p", "li"))


class _End(NamedTuple):
    """Behind the last child of an element."""

    name: str


def without_html_blocks(piece: str) -> str:
    r"""The text of a piece that begins with a `div`; any other piece, or one without text, as it is.

    >>> without_html_blocks("<div><p>a</p>b<br/>c</div>")
    'a\nb\nc'
    """
    stripped = piece.strip()
    if not _BLOCK.match(stripped) or _TABLE.search(stripped):
        return piece
    try:
        text = _text_of(stripped)
    except (TedsError, TableTooLargeError):
        text = ""
    return text or stripped


def _text_of(markup: str) -> str:
    """The lines of a fragment that have text. The tree is only walked: to change it takes quadratic time."""
    from bs4.element import CData, NavigableString, Tag

    parts: list[str] = []
    pending: list[object] = list(reversed(parse_html(markup).contents))
    last = [""]  # child of each element that is open, if it is a text
    while pending:
        node = pending.pop()
        if isinstance(node, _End):
            if last.pop() != "\n" and node.name in _BLOCKS:
                parts.append("\n")
            last[-1] = ""
        elif isinstance(node, NavigableString):
            last[-1] = str(node)
            parts += (str(node),) if type(node) in (NavigableString, CData) else ()
        elif isinstance(node, Tag) and node.name == "br":
            last[-1] = "\n"
            parts.append("\n")
        elif isinstance(node, Tag) and node.name not in _UNSEEN:
            if node.name not in _UNWRAPPED:
                last.append("")
                pending.append(_End(node.name))
            pending += reversed(node.contents)
    lines = "".join(parts).replace("\xa0", " ").split("\n")
    return "\n".join(filter(None, map(str.strip, lines)))
