"""The official DP-Bench evaluator on page elements.

Source: upstage/dp-bench, src/layout_evaluation.py and src/table_evaluation.py; docs/benchmarks/dp_bench.md. Revision
6c2a241 made the published leaderboard; b837da3 before it (v1) took predicted tables apart in another way. Nothing here
reads Markdown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from loupe.benchmarks.dp_bench.elements import IGNORED, Element, tables_of_page, text_of_page
from loupe.benchmarks.shared.table_answers.scored import TableScores, score_pair
from loupe.benchmarks.shared.table_answers.soup import parse_html
from loupe.metrics.libxml2_markup import as_read_by_libxml2
from loupe.metrics.nid import nid_dp_bench_v1
from loupe.metrics.table_normalization import wrap_like_dpbench
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

_END = "</table>"


def page_nid(prediction: Sequence[Element], reference: Sequence[Element], ignored: Collection[str] = IGNORED) -> float:
    """NID of one page; two pages without any text earn 0.01, as upstream."""
    return nid_dp_bench_v1(text_of_page(prediction, ignored), text_of_page(reference, ignored))


def page_tables(prediction: Sequence[Element], reference: Sequence[Element], *, v1: bool = False) -> TableScores | None:
    """TEDS and TEDS-struct of the first tables of a page; None where the ground truth has no table.

    Only the first table counts, because upstream's XPath finds no other, and `th` is not `td`. A page without
    a predicted table is wrapped in an empty one by upstream, and earns the share of tags inside cells, mostly 0.
    """
    wanted, found = tables_of_page(reference), tables_of_page(prediction)
    if not wanted:
        return None
    try:
        if v1:
            right = [_html(table, null="None") for table in wanted]  # written into an f-string upstream
            read = [unwrap_like_dp_bench_v1(_html(table)) for table in found]
        else:
            right, read = (
                [part for table in tables for part in table_contents(_html(table))] for tables in (wanted, found)
            )
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return score_pair(_page(read), _page(right), variant="ibm")


def table_contents(html: str) -> list[str]:
    """What stands in each table of the string, `<table[^>]*?>(.*?)</table>` as plain text; without any, the string.

    Kept for parity: a nested table ends the outer one, tags in capitals are none, text around tables is lost.
    """
    found, cursor = [], 0
    while (
        (start := html.find("<table", cursor)) >= 0
        and (inside := html.find(">", start) + 1) > 0
        and (end := html.find(_END, inside)) >= 0
    ):
        found.append(html[inside:end])
        cursor = end + len(_END)
    return found or [html]


def unwrap_like_dp_bench_v1(html: str) -> str:
    """The rows of a predicted table: the child tags of its first `<table>`.

    Kept for parity: text between the tags and further tables are lost, and `<table border="1">` is not recognised, so
    that it ends up inside another table and costs a node. Raises TedsError where `<table>` stands in a comment or an
    attribute alone: upstream takes the children of None there.
    """
    if "<table>" not in html:
        return html
    from bs4 import Tag

    table = parse_html(html).find("table")
    if not isinstance(table, Tag):
        raise TedsError("html.parser finds no table in this", upstream="AttributeError")
    return "".join(str(child) for child in table.find_all(recursive=False))


def _html(table: Element, null: str | None = None) -> str:
    """The HTML of a table element, `null` for what is no text. Raises TedsError where upstream raises."""
    html = table.content.html
    if isinstance(html, msgspec.UnsetType):
        raise TedsError("a table has no html", upstream="KeyError")
    html = null if html is None else html
    if html is None:
        raise TedsError("the html of a table is no text", upstream="TypeError")
    return html


def _page(tables: Sequence[str]) -> str:
    page = f"<html><body>{''.join(f'<table>{rows}</table>' for rows in tables)}</body></html>"
    return as_read_by_libxml2(wrap_like_dpbench(page), "2.12")  # upstream pins lxml 5.1.0
