"""Markdown tables of an answer: rows are rendered as HTML, then neighbours are merged.

Protocol: docs/protocols/omnidocbench.md#markdown-tables and #bar-tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, Piece, blank, pieces, replaced, with_replacements

_BARS = Delimiters("|", "|\n")
_TABLE = Delimiters("<table", "</table>")
_BARE_TABLE = Delimiters("<table>", "</table>")
_COMMENT = Delimiters("<!--", "-->")
_SECTION_TAG = re.compile("</?t(able|head|body)>")


def take_bar_tables(text: str) -> tuple[list[Item], str]:
    """The tables made of lines with bars, and the rest of the *converted* text: offsets are its own (#markdown-tables).

    Fewer than two stretches from a bar to a bar that ends a line are no table, and leave the text as it is.
    """
    if text.count("|") < 2 or len(stretches_of_bars(text + "\n")) < 2:
        return [], text
    text = bar_tables_to_html(text)
    tables = list(pieces(text, [_TABLE]))
    items = [
        Item(
            category="html_table",
            content=text[table.start : table.end],
            start=table.start,
            end=table.end,
            fine_category="md2html_table",
        )
        for table in tables
    ]
    return items, blank(text, [(table.start, table.end) for table in tables])


def stretches_of_bars(text: str) -> list[Piece]:
    """From a bar to the next bar that ends a line: mostly a row, but also prose behind a stray bar (#bar-tables)."""
    return list(pieces(text, [_BARS]))


def bar_tables_to_html(text: str) -> str:
    """The text with its Markdown tables as HTML, and the damage that the official conversion does (#bar-tables)."""
    text = text.replace("\r", "") + "\n"
    rows = stretches_of_bars(text)
    text = with_replacements(text, rows, [_render(text[row.start : row.end]) for row in rows])
    text = "\n".join(merge_neighbours(text.split("\n")))
    return text.replace("<table>", '<table border="1" >').replace("<td>", '<td colspan="1" rowspan="1">')


def _render(stretch: str) -> str:
    """One stretch as a table of its own: its first line is the header, its second is dropped (#bar-tables)."""
    rows = [line.strip() for line in stretch.strip().split("\n")]
    lines = ["<table>", "  <thead>", "    <tr>"]
    lines += [f"      <th>{cell}</th>" for cell in _cells(rows[0])]
    lines += ["    </tr>", "  </thead>", "  <tbody>"]
    for row in rows[2:]:
        lines += ["    <tr>", *(f"      <td>{cell}</td>" for cell in _cells(row)), "    </tr>"]
    return "\n".join([*lines, "  </tbody>", "</table>", ""])


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def merge_neighbours(lines: Sequence[str]) -> list[str]:
    """Make one table of those that follow one another (#bar-tables).

    The line directly above a table vanishes in it, as does any of its lines with a colon or three hyphens.
    """
    output, table, in_table, last = [], [], False, ""
    for line in lines:
        if "<table>" in line:
            in_table = True
            table.append(last)
        elif in_table:
            table += () if _is_lost(last) else ("\n", last)
            if "</table>" in last:
                in_table = False
                output.append(_merged("".join(table)))
                table = []
        else:
            output.append(last)
        last = line
    if last and (in_table or "</table>" in last):
        output.append(_merged("".join([*table, "\n", last])))
    elif last:
        output.append(last)
    return output


def _is_lost(line: str) -> bool:
    """Whether the official conversion takes a line for the rule under a header, or drops it with one (#bar-tables)."""
    return ":" in line or "---" in line or "</thead>" in line


def _merged(block: str) -> str:
    """The lines of all tables of a block in one table; tables of at most two lines are left out."""
    block = replaced(block, _COMMENT, "")
    kept: list[str] = []
    for table in pieces(block, [_BARE_TABLE]):
        lines = [_as_cells(line) for line in block[table.start : table.end].split("\n")]
        rows = [line for line in lines if not _SECTION_TAG.search(line)]
        kept += rows if len(rows) > 2 else []
    return "\n\n<table>\n" + "\n".join(kept) + "\n</table>\n\n"


def _as_cells(line: str) -> str:
    return line.replace("<th>", "<td>").replace("</th>", "</td>") if "<th>" in line else line
