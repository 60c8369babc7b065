"""The preparations before TEDS: what each rule does, and that our reader of markup equals BeautifulSoup."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics.table_normalization import (
    NORMALIZED,
    normalize_to_plain_cells,
    simplify,
    simplify_plain,
    wrap_like_dpbench,
)
from loupe.metrics.teds import teds
from tests.metrics.test_html_tokens import IS_OF_THE_RULE

START, END = '<html><body><table border="1" >', "</table></body></html>"


@pytest.mark.parametrize(
    ("given_table", "inside"),
    [
        ("<table><tr><th>a</th></tr></table>", "<tr><td>a</td></tr>"),
        ("<table><thead><tr><td>a</td></tr></thead></table>", "<tr><td>a</td></tr>"),
        ("<table><tbody><tr><td>a</td></tr></tbody></table>", "<tr><td>a</td></tr>"),
        ("<table><tr><td>x<sup>2</sup><sub>i</sub></td></tr></table>", "<tr><td>x2i</td></tr>"),
        ("<table><tr><td><div><p>a</p></div><span>b</span></td></tr></table>", "<tr><td>ab</td></tr>"),
        ('<table><tr><td><math alttext="x^2"><mi>x</mi></math></td></tr></table>', "<tr><td>$x^2$</td></tr>"),
        ("<table><tr><td><math><mi>x</mi></math></td></tr></table>", "<tr><td><mi>x</mi></td></tr>"),
        ("<table><colgroup><col/></colgroup><tr><td>a</td></tr></table>", "<tr><td>a</td></tr>"),
        (
            '<table class="k"><tr style="s"><td width="1" colspan="2">a</td></tr></table>',
            '<tr><td colspan="2">a</td></tr>',
        ),
        ("<table>\n<tr>\n<td>a  b\t c</td></tr></table>", "<tr><td>a b c</td></tr>"),
        ("<table><tr><td>ﬁ ½</td></tr></table>", "<tr><td>fi 1⁄2</td></tr>"),
        ("<table><tr><td>&lt;5</td></tr></table>", "<tr><td><5</td></tr>"),
        ("a<table><tr></tr></table>b<table><td></td></table>c", "<tr></tr></table>b<table><td></td>"),
        ("<HTML><body><TABLE><TR><TD>a</TD></TR></TABLE></body></HTML>", "<tr><td>a</td></tr>"),
        ("```html\n<table><tr></tr></table>\n```", "<tr></tr>"),
        ("<table><tr><td>cut", "<tr><td>cut</td></tr>"),
        ("no table", "<html><body>no table</body></html>"),
        ("", "<html><body></body></html>"),
    ],
)
def test_a_table_is_normalised_to_plain_cells(given_table: str, inside: str) -> None:
    assert normalize_to_plain_cells(given_table) == START + inside + END


def test_a_bare_markdown_like_header_counts_after_normalisation_only() -> None:
    prediction, reference = "<table><tr><th>a</th></tr></table>", "<table><tr><td>a</td></tr></table>"
    assert teds(prediction, reference, variant="omnidocbench") == 0.0
    assert teds(prediction, reference, variant="normalized") == 1.0


PIECES = (
    *("<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th headers='a  b'>", "</th>", "<thead>", "</thead>"),
    *(
        "<span>",
        "</span>",
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<br>",
        "<br/>",
        "</br>",
        "<td/>",
        "<p/>",
        "<pre>",
        "</pre>",
    ),
    *("<math alttext='a&lt;b'>", "<math>", "</math>", "<colgroup>", "</colgroup>", "<col>", "<script>", "</script>"),
    *("<style>", "</style>", "<textarea>", "</textarea>", "<meta charset=latin1>", "<a rel=' x  y '>", "</a>"),
    *("<meta http-equiv='Content-Type' content='text/html; charset=x'>", "<!-- c -->", "<!---->", "<!DOCTYPE html>"),
    *("<![CDATA[x]]>", "<?php a ?>", "<?", "<!x>", "<!", "<![", "<", "< a", ">", "</", "</>", "</ td>", "<TD>", "<b"),
    *("&lt;", "&amp;", "&nbsp", "&foo;", "&foo", "&#65;", "&#x41;", "&#128;", "&#xZZ;", "&#", "&#12a", "&#x1g;", "&"),
    *("&copyx;", "&notit;", "&#55296;", "&#1114112;", "&#0;", " ", "\n", "\t ", " \n ", "a", "b c", "\xa0", "'", '"'),
    *("<td class='a  b' a=1 A=2 b>", "<td a=\"x'y\" b='x\"y' c='&quot;&#39;'>", "<td colspan=2", "x=y>", "\r\n", "\0"),
)


@pytest.mark.skipif(not IS_OF_THE_RULE, reason="this Python reads malformed markup by another rule")
@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=25).map("".join))
def test_any_markup_is_simplified_as_by_beautifulsoup(markup: str) -> None:
    assert outcome(simplify, markup) == outcome(simplify_by_beautifulsoup, markup)


def outcome(function: Callable[[str], str], markup: str) -> str:
    try:
        return function(markup)
    except (AssertionError, ValueError) as error:
        return "rejected" if isinstance(error, AssertionError) else "ValueError"


_TEXTS = st.sampled_from(
    ["", " ", "\n ", "a", "b c", "x > y", "\xa0", "'\"", "\0", "\r\n", "½", "&quot;&amp;lt;", "&lt;5"]
)
_ATTRIBUTES = st.sampled_from(
    ["", "", " ", ' border="1" ', ' class=" a  b"', ' b="x>y"', ' b="2" a="it\'s" b="3"', ' headers="\n"']
)
_NAMES = st.sampled_from(["html", "table", "thead", "tbody", "tr", "td", "th", "b", "sup", "span", "div", "p"])
_NESTED = st.recursive(
    _TEXTS,
    lambda inner: st.builds(
        lambda name, attributes, parts, text: f"<{name}{attributes}>{''.join(parts)}</{name}>{text}",
        *(_NAMES, _ATTRIBUTES, st.lists(inner, max_size=4), _TEXTS),
    ),
    max_leaves=12,
)


@given(_NESTED)
def test_well_nested_markup_needs_no_parser_and_becomes_the_same(markup: str) -> None:
    plain = simplify_plain(markup, NORMALIZED)
    assert plain is None or plain == simplify_by_beautifulsoup(markup)
    assert plain is not None or not markup.startswith("<") or "x>y" in markup  # so the quick way is really taken


def simplify_by_beautifulsoup(markup: str) -> str:
    """The steps as the protocol words them."""
    bs4 = pytest.importorskip("bs4")
    try:
        soup = bs4.BeautifulSoup(markup, "html.parser")
    except bs4.exceptions.ParserRejectedMarkup as error:
        raise AssertionError from error
    for header in soup.find_all("th"):
        header.name = "td"
    for section in soup.find_all("thead"):
        section.unwrap()
    for formula in soup.find_all("math"):
        if formula.get("alttext"):
            formula.replace_with(f"${formula['alttext']}$")
        else:
            formula.unwrap()
    for name in ("span", "sup", "sub", "div", "p"):
        for tag in soup.find_all(name):
            tag.unwrap()
    for columns in soup.find_all("colgroup"):
        columns.decompose()
    return str(soup)


@pytest.mark.parametrize(
    "piece", ["<div>", "<span>a</span>&x", "<table", "<![CDATA[", "<!--", "<td a=1 ", ' style="', "&#"]
)
def test_hostile_markup_is_normalised_in_linear_time(piece: str) -> None:
    started = time.process_time()
    normalize_to_plain_cells(piece * 20_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("string", "page"),
    [
        ("<table><tr></tr></table>", "<html><body><table><tr></tr></table></body></html>"),
        ("<tr></tr>", "<html><body><table><tr></tr></table></body></html>"),
        ("", "<html><body><table></table></body></html>"),
        ("<html><body><table><thead><tr>", "<html><body><table><tr>"),
        ("x</table></body></html>", "x</table></body></html>"),
        ("<table border='1'></table>", "<html><body><table><table border='1'></table></table></body></html>"),
        ("<TBODY></TBODY>", "<html><body><table><TBODY></TBODY></table></body></html>"),
    ],
)
def test_a_string_is_wrapped_as_dp_bench_does(string: str, page: str) -> None:
    assert wrap_like_dpbench(string) == page
