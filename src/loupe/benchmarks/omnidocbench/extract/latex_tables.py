r"""LaTeX tables of an answer: `table` environments, then `tabular` ones outside of them.

Protocol: docs/protocols/omnidocbench.md#latex-tables.
"""

from __future__ import annotations

import re

from loupe.benchmarks.omnidocbench.extract.nesting import outermost
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, blank, pieces

_TABLE = Delimiters(r"\begin{table}", r"\end{table}")
_BEGIN = re.compile(re.escape(r"\begin{tabular}"))
_END = re.compile(re.escape(r"\end{tabular}"))
#: `\end{tabular}` has 13 characters; the official search takes the length of its regex, which has 14.
_STEP = 14


def take_latex_tables(text: str) -> tuple[list[Item], str]:
    """The LaTeX tables in the order of their starts, and the text with blanks in their places."""
    tables = [(piece.start, piece.end) for piece in pieces(text, [_TABLE])]
    rest = blank(text, tables)
    found = [(start, end, text) for start, end in tables]
    found += [(start, end, rest) for start, end in tabulars_with_the_character_behind(rest)]
    found.sort(key=lambda each: each[0])
    items = [
        Item(category="latex_table", content=source[start:end], start=start, end=end) for start, end, source in found
    ]
    return items, blank(rest, [(item.start, item.end) for item in items])


def tabulars_with_the_character_behind(text: str) -> list[tuple[int, int]]:
    r"""Outermost `tabular` environments, each with the one character that follows it (#latex-tables).

    A paragraph break behind a table thereby becomes a single newline, which separates nothing.
    """
    begins = [match.start() for match in _BEGIN.finditer(text)]
    ends = [match.start() for match in _END.finditer(text)]
    return [(start, min(end, len(text))) for start, end in outermost(begins, ends, step=_STEP)]
