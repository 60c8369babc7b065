"""The official DP-Bench evaluator, version 1, on page elements.

Source: upstage/dp-bench (revision b837da3), src/layout_evaluation.py and src/table_evaluation.py; sections 2 and 3 of
docs/benchmarks/dp_bench.md. Nothing here reads Markdown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loupe.benchmarks.dp.elements import IGNORED, Element, tables_of_page, text_of_page
from loupe.benchmarks.table_answers.scored import TableScores, score_pair
from loupe.benchmarks.table_answers.soup import parse_html
from loupe.metrics.nid import nid_dp_bench_v1
from loupe.metrics.table_tree import TableTooLargeError, TedsError


def page_nid(prediction: Sequence[Element], reference: Sequence[Element], ignored: Collection[str] = IGNORED) -> float:
    """NID of one page; two pages without any text earn 0.01, as upstream."""
    return nid_dp_bench_v1(text_of_page(prediction, ignored), text_of_page(reference, ignored))


def page_tables(prediction: Sequence[Element], reference: Sequence[Element]) -> TableScores | None:
    """TEDS and TEDS-struct of the first tables of a page; None where the ground truth has no table.

    Only the first table counts, because upstream's XPath finds no other, and `th` is not `td`. A page without
    a predicted table is wrapped in an empty one by upstream, and earns the share of tags inside cells, mostly 0.
    """
    wanted = tables_of_page(reference)
    if not wanted:
        return None
    try:
        found = [unwrap_like_dp_bench_v1(table.html) for table in tables_of_page(prediction)]
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return score_pair(_page(found), _page([table.html for table in wanted]), variant="dpbench")


def unwrap_like_dp_bench_v1(html: str) -> str:
    """The rows of a predicted table: the child tags of its first `<table>`.

    Kept for parity: text between the tags and further tables are lost, and `<table border="1">` is not recognised, so
    that it ends up inside another table and costs a node.
    """
    if "<table>" not in html:
        return html
    from bs4 import Tag

    table = parse_html(html).find("table")
    children = table.find_all(recursive=False) if isinstance(table, Tag) else []
    return "".join(str(child) for child in children)


def _page(tables: Sequence[str]) -> str:
    return f"<html><body>{''.join(f'<table>{rows}</table>' for rows in tables)}</body></html>"
