"""What the callers of TEDS do to two HTML strings before they are compared.

Protocol: docs/metrics/teds.md, sections 6 and 7. Both are kept with their flaws, because published numbers hold them.
"""

from __future__ import annotations

import html
import re
import unicodedata

from loupe.metrics.table_markup import simplify
from loupe.metrics.table_tree import TedsError

_ATTRIBUTES = tuple(re.compile(f' {name}=".*?"') for name in ("style", "height", "width", "align", "class"))
_TABLE_START = re.compile(r"<table\b[^>]*>", re.IGNORECASE)
_TABLE_END = re.compile("</table>", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")


def wrap_like_dpbench(table: str) -> str:
    """What DP-Bench's `calc_table_score` does to a string before TEDS: wrap it in a page, delete the section tags.

    A string that has one of the two ends of a page with a table is not wrapped, even if it lacks the other.
    """
    if table.startswith("<table>") and table.endswith("</table>"):
        table = f"<html><body>{table}</body></html>"
    elif not table.startswith("<html><body><table>") and not table.endswith("</table></body></html>"):
        table = f"<html><body><table>{table}</table></body></html>"
    for tag in ("<thead>", "</thead>", "<tbody>", "</tbody>"):
        table = table.replace(tag, "")
    return table


def normalize_like_request001(table: str) -> str:
    """One page with one table, header cells made cells, most tags inside cells removed, blanks collapsed, NFKC.

    Several tables become one, from the first `<table>` to the last `</table>`; without any, the whole string becomes
    the inside of a table. Markup that is written as entities becomes markup. Raises TedsError where upstream raises.
    """
    page = table.strip()
    if not page.lower().startswith("<html"):
        page = f"<html><body>{page}</body></html>"
    try:
        simple = simplify(page)
    except AssertionError as error:
        raise TedsError(f"the HTML cannot be parsed: {error}", upstream="ParserRejectedMarkup") from error
    except ValueError as error:
        raise TedsError(f"the HTML cannot be parsed: {error}", upstream="ValueError") from error
    text = unicodedata.normalize("NFKC", html.unescape(simple).replace("\n", "")).strip()
    inside = _inside_of_tables(text)
    for attribute in _ATTRIBUTES:
        inside = attribute.sub("", inside)
    inside = _BLANKS.sub(" ", inside.replace("<tbody>", "").replace("</tbody>", ""))
    return f'<html><body><table border="1" >{inside}</table></body></html>'


def _inside_of_tables(text: str) -> str:
    """What `<table\\b[^>]*>(.*)</table>` captures, greedily; the whole text where it finds nothing."""
    start = _TABLE_START.search(text)
    ends = [end.start() for end in _TABLE_END.finditer(text)]
    return text[start.end() : ends[-1]] if start and ends and ends[-1] >= start.end() else text
