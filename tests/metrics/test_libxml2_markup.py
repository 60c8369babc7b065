"""Damaged tables as the official environments of OmniDocBench and DP-Bench read them.

`libxml2_trees.jsonl` holds generated pages and what the real lxml 4.9.1 (libxml2 2.9.14) made of their table: tag,
colspan, rowspan, text, children and tail of each node; and what lxml 5.1.0 (2.12.3) made of it where that differs.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.metrics.html_markup import Version, as_read_by_libxml2
from loupe.metrics.teds.table_tree import TedsError, is_plain, parse_table

FILE = Path(__file__).with_name("libxml2_trees.jsonl")
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
PAGE = '<html><body><table border="1" >{}</table></body></html>'


def tree(html: str) -> Any:
    """The first table of a page, or what it raises."""
    try:
        table = parse_table(html)
    except TedsError as error:
        return error.upstream
    return None if table is None else [*walked(table)[:5], ""]


def walked(node: Any) -> list[Any]:
    children = [walked(child) for child in node]
    # Elements whose inside newer parsers take for text have another name, the same on both sides of a comparison.
    return [
        *(node.tag.removeprefix("x-"), node.get("colspan"), node.get("rowspan"), node.text or ""),
        *(children, node.tail or ""),
    ]


@pytest.mark.parametrize("version", get_args(Version))
def test_damaged_tables_have_the_trees_of_the_official_environments(version: Version) -> None:
    wanted = [case.get(version, case["2.9"]) for case in CASES]
    found = [tree(as_read_by_libxml2(case["html"], version)) for case in CASES]
    assert [case["html"] for case, *both in zip(CASES, found, wanted, strict=True) if both[0] != both[1]] == []
    assert len(CASES) > 300 and sum("2.12" in case for case in CASES) >= 20


def test_plain_tables_stay_as_they_are() -> None:
    html = PAGE.format('<tr><th>a &amp; b</th><td colspan="2">1 < 2<br/><i>c</i></td></tr>')
    assert as_read_by_libxml2(html, "2.9") is html


@given(st.text("<>/!-?&;#\"' =abt:1d\n\x00é", max_size=40))
def test_what_was_written_plainly_is_plain_and_stays(text: str) -> None:
    once = as_read_by_libxml2(PAGE.format(text), "2.9")
    assert (
        as_read_by_libxml2(once, "2.9") == once or is_plain(once) or tree(as_read_by_libxml2(once, "2.9")) == tree(once)
    )


@pytest.mark.parametrize("part", ["<", "<!", "<!--", "<a ", "<td x='", "&", "&#", "</", "<?x", "<script>", "< b"])
def test_markup_that_never_ends_is_read_at_once(part: str) -> None:
    started = time.process_time()
    as_read_by_libxml2(PAGE.format(part * 100_000), "2.9")
    assert time.process_time() - started < 3


def test_omnidocbench_scores_a_cell_with_an_unwritten_tag_as_officially() -> None:
    """`a<b` in a cell takes its end tag with it: lxml 4.9.1 has an empty `b` there, and no `b<` with an attribute."""
    html = "<table><tr><td>a</td><td>two</td></tr></table>"
    truth = {"category_type": "table", "html": html, "order": 1, "anno_id": 1, "attribute": {}}
    page = {"layout_dets": [truth], "extra": {"relation": []}}
    for answer, official in (("a&lt;b", 1 - 2 / 3 / 4), ("a<?b c>", 1 - 3 / 4 / 3)):
        (sample,) = match_page(page, html.replace("a<", f"{answer}<", 1)).table
        assert (sample.teds, sample.teds_structure_only) == (pytest.approx(official), pytest.approx(1.0))


@pytest.mark.parametrize("version", ["2.9", "2.12"])
def test_any_character_in_a_tag_comes_to_its_end(version: Version) -> None:
    for code in [*range(1, 0x300), 0x2028, 0x3000, 0xFEFF, 0xFFFF]:
        for markup in (
            f"<table><tr><td{chr(code)}x=1>a</td></tr></table>",
            f"<table><tr><td x{chr(code)}",
            f"<td {chr(code)}",
        ):
            assert "<t" in as_read_by_libxml2(markup, version)
