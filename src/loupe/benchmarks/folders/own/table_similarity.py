"""TEDS of two tables in one spelling: rows and cells, whatever they were written in.

Metric: docs/metrics/teds.md. Header cells count as cells, sections of rows as nothing, markup in cells is dropped.
"""

from __future__ import annotations

import re

from loupe.benchmarks.folders.own.normalization import Comparison, prepare_text
from loupe.benchmarks.folders.own.tables import read_rows
from loupe.metrics.teds import teds
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from loupe.types import Score

#: Up to here a page needs no parser of HTML.
LONGEST_PAGE = 1_000_000

#: What a page of plain markup cannot hold; both sides get the same stand-in, so that equal cells stay equal.
_MARKUP = str.maketrans({"&": "＆", "<": "＜", ">": "＞"})
_UNUSUAL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def score_teds(answer: str, reference: str, comparison: Comparison) -> Score:
    """TEDS of the first tables of both, 0 to 1. 0 without a table, and, named in a tag, for work beyond all bounds."""
    found, wanted = plain_page(answer, comparison), plain_page(reference, comparison)
    try:
        if len(found) > LONGEST_PAGE:
            raise TableTooLargeError(f"{len(found):,} characters")
        value = max(0.0, teds(found, wanted))
    except TedsError as error:
        return Score(measure="teds", counts=(0.0, 1.0), tags={"teds_error": type(error).__name__})
    return Score(measure="teds", counts=(value, 1.0))


def plain_page(answer: str, comparison: Comparison) -> str:
    """A page with the first table of an answer and nothing else; "" without a table."""
    rows = read_rows(answer)
    if not any(rows):
        return ""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            spans = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
            spans += f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
            text = _UNUSUAL.sub("\ufffd", prepare_text(cell.text, comparison)).translate(_MARKUP)
            cells.append(f"<td{spans}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<html><body><table>{''.join(lines)}</table></body></html>"
