"""What the callers of TEDS do to two HTML strings before they are compared.

Protocol: docs/protocols/teds.md#dp-bench and #normalisation; docs/protocols/omnidocbench.md#normalisation. All are kept
with their flaws, because published numbers hold them.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

from loupe.metrics.table_markup import (
    CELL_TEXTS,
    NORMALIZED,
    OMNIDOCBENCH,
    OMNIDOCBENCH_1_6,
    Simplification,
    simplify,
)
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

MAX_TAGS: Final = 200_000
"""Of one answer: some seconds of reading, and five times what a table of 20,000 cells has."""

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


def normalize_to_plain_cells(table: str) -> str:
    """One page with one table, header cells made cells, most tags inside cells removed, blanks collapsed, NFKC.

    Several tables become one, from the first `<table>` to the last `</table>`; without any, the whole string becomes
    the inside of a table. Markup that is written as entities becomes markup. Raises TedsError where upstream raises,
    TableTooLargeError for more than MAX_TAGS tags, or more than any honest table has that are never finished.
    """
    if table.count("<") > MAX_TAGS:
        raise TableTooLargeError(f"{table.count('<'):,} tags in one answer, at most {MAX_TAGS:,} are read")
    page = table.strip()
    if not page.lower().startswith("<html"):
        page = f"<html><body>{page}</body></html>"
    text = _as_plain_text(_simplified(page, NORMALIZED))
    inside = _inside_of_tables(text)
    return _page(text if inside is None else inside)


def normalize_like_omnidocbench(table: str) -> str:
    """One page with one table, as `normalize_to_plain_cells`, but only the bare tags in cells are removed.

    "" where there is no table (`<TABLE>` alone is none), as for upstream. Raises as `normalize_to_plain_cells`, but it
    is upstream's whole run that a refusal of html.parser ends.
    """
    if "<table" not in table.replace(" ", ""):
        return ""
    return _omnidocbench_page(_simplified(table, OMNIDOCBENCH))


def normalize_like_omnidocbench_1_6(table: str) -> str:
    """As `normalize_like_omnidocbench`, but bodies are unwrapped too, and texts of cells have a normal form.

    Protocol: docs/protocols/omnidocbench_v16.md#html-tables.
    """
    if "<table" not in table.replace(" ", ""):
        return ""
    return _omnidocbench_page(_simplified(_simplified(table, OMNIDOCBENCH_1_6), CELL_TEXTS))


def _omnidocbench_page(markup: str) -> str:
    page = _page(_inside_of_tables(_as_plain_text(markup)) or "")
    return _without_bare_colgroups(_without_bare_tags_in_cells(page))


def _simplified(page: str, rules: Simplification) -> str:
    try:
        return simplify(page, rules)
    except TableTooLargeError:
        raise
    except (AssertionError, ValueError) as error:
        upstream = "ParserRejectedMarkup" if isinstance(error, AssertionError) else "ValueError"
        raise TedsError(f"the HTML cannot be parsed: {error}", upstream=upstream) from error


def _as_plain_text(markup: str) -> str:
    """Entities become characters (markup too), newlines go, NFKC."""
    return unicodedata.normalize("NFKC", html.unescape(markup).replace("\n", "")).strip()


def _page(inside: str) -> str:
    """A page with one table of this inside, without the attributes and sections that do not count."""
    for attribute in _ATTRIBUTES:
        inside = attribute.sub("", inside)
    inside = _BLANKS.sub(" ", inside.replace("<tbody>", "").replace("</tbody>", ""))
    return f'<html><body><table border="1" >{inside}</table></body></html>'


def _inside_of_tables(text: str) -> str | None:
    """What `<table\\b[^>]*>(.*)</table>` captures, greedily, over newlines."""
    start = _TABLE_START.search(text, 0, text.rfind(">") + 1)
    ends = [end.start() for end in _TABLE_END.finditer(text)]
    return text[start.end() : ends[-1]] if start and ends and ends[-1] >= start.end() else None


def _without_bare_tags_in_cells(page: str) -> str:
    """Delete tags of five kinds that have no attributes; those with attributes stay, and only their end tags go."""
    for name in ("sup", "sub", "span", "div", "p"):
        page = page.replace(f"<{name}>", "").replace(f"</{name}>", "")
    return page.replace('<spandata-span-identity="">', "")


def _without_bare_colgroups(page: str) -> str:
    """Delete each `<colgroup>` that has no attributes, up to the next `</colgroup>`."""
    kept: list[str] = []
    cursor = 0
    while (begin := page.find("<colgroup>", cursor)) >= 0 and (end := page.find("</colgroup>", begin)) >= 0:
        kept.append(page[cursor:begin])
        cursor = end + len("</colgroup>")
    return "".join([*kept, page[cursor:]])
