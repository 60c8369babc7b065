"""Texts that a spreadsheet does not run: the only place that writes cells of CSV and tab-separated tables.

A spreadsheet runs what begins like a formula, and texts are foreign: such a text gets an apostrophe in front (OWASP,
"CSV Injection"). Which character parts cells depends on the reader's country and settings, and quotes count only where
a cell begins. So a text may be cut at any `;`, `,`, tab or line break of its own, and each part counts as a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Cell: TypeAlias = str | float | int | None

#: What begins a formula; the wide and small forms, too, where East Asian input is on.
_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫"
_SEPARATORS = ";,\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
#: What programs drop from the front of a cell: white space, quotes, and what cannot be seen.
_DROPPED = f'(?:(?![{_SEPARATORS}])[\\s\\x00-\\x20"\\u200b-\\u200f\\u2060\\ufeff])*'
_FORMULA = re.compile(
    f'(?:^|(?<=[{_SEPARATORS}]))(?="*\t|"*\r(?!\n)|{_DROPPED}[{_SIGNS}])|(?<=[;,\t])(?=\r)|^(?=[\r\n])'
)
_ONE_NUMBER = r"[-+]?[\d.,]+(?:e[-+]?\d+)?(?: ?[%A-Za-z]+)?"
#: A number or a range, with units.
_NUMBER = re.compile(f"{_ONE_NUMBER}(?: [±…] {_ONE_NUMBER})*", re.IGNORECASE)


def inert(text: str) -> str:
    """Return the text with an apostrophe before everything that a spreadsheet could run.

    >>> inert("=A1"), inert("a; =A1"), inert("a=b")
    ("'=A1", "a;' =A1", 'a=b')
    """
    return _FORMULA.sub("'", text)


def csv_lines(rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return the rows as CSV (RFC 4180): every text is quoted and inert, numbers stay numbers, None is left empty.

    >>> csv_lines([["a", None, 1.5, ""]])
    b'"a",,1.5,""\\r\\n'
    """
    return "".join(f"{','.join(map(_csv_cell, row))}\r\n" for row in rows).encode("utf-8", "replace")


def _csv_cell(cell: Cell) -> str:
    # The writer of Python 3.11 quotes None like a text, which databases take for one.
    if isinstance(cell, str):
        return '"{}"'.format(inert(cell).replace('"', '""'))
    return "" if cell is None else str(cell)


def tab_separated_line(cells: Iterable[str]) -> str:
    """Return cells that hold no tab or line break as one line; a cell that begins like a formula is marked.

    These tables hold numbers as texts, which stay as they are.
    """
    return "\t".join(f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell for cell in cells)
