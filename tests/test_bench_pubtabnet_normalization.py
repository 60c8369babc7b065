"""The normalisation of request 001, rule by rule, and its fast path against BeautifulSoup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.table_answers import normalized_html
from loupe.benchmarks.table_answers.normalized_html import normalize_table, unescape_after_serialising
from loupe.metrics.table_tree import TableTooLargeError


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("<table><tr><td>a</td></tr></table>", "<tr><td>a</td></tr>"),
        (" <HTML><body>x<table border=1><tr></tr></table>y</body></HTML>", "<tr></tr>"),
        ("<table><thead><tr><th colspan='2'>a</th></tr></thead></table>", '<tr><td colspan="2">a</td></tr>'),
        ("<table><tbody><tr><td>a\nb</td></tr></tbody></table>", "<tr><td>ab</td></tr>"),
        ("<table><tr><td><p><span>a</span><sup>2</sup></p></td></tr></table>", "<tr><td>a2</td></tr>"),
        ("<table><tr><td><b>a</b><br></td></tr></table>", "<tr><td><b>a</b><br/></td></tr>"),
        ("<table><colgroup><col/>x</colgroup><tr></tr></table>", "<tr></tr>"),
        ('<table><td><math alttext="x^2"><mi>x</mi></math><math>y</math></td></table>', "<td>$x^2$y</td>"),
        ("<table><td>&lt;5 &amp; ½</td></table>", "<td><5 & 1⁄2</td>"),
        ('<table><td style="a" width="1" class="b c" id="d">x  y</td></table>', '<td id="d">x y</td>'),
        ("<table>a</table> and <table>b</table>", "a</table> and <table>b"),
        ("```html\n<table>a</table>\n```", "a"),
        ("no table", "<html><body>no table</body></html>"),
        ("<table>unclosed", "unclosed"),
        ("", "<html><body></body></html>"),
    ],
)
def test_tables_are_normalised(source: str, inside: str) -> None:
    assert normalize_table(source) == f'<html><body><table border="1" >{inside}</table></body></html>'


def test_too_many_tags_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(TableTooLargeError, match="tags in one answer"):
        normalize_table("<" * 500_000)


TEXTS = st.sampled_from(["x", " ", "\n ", "\t", "a > b", "&amp;", "&lt;td&gt;", "é&nbsp;", "&copy;", "\u3000", "&"])
ATTRIBUTES = st.sampled_from(
    ["", "", ' colspan="2"', ' style="x: y" rowspan="3"', ' rowspan="1" rowspan="2"', ' class="a  b"', " colspan=2"]
)
NAMES = st.sampled_from(
    ["table", "thead", "tbody", "tr", "th", "td", "b", "span", "sup", "p", "div", "math", "br", "colgroup"]
)


def element(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inside, max_size=3).map("".join)
    return st.builds(lambda name, given, text: f"<{name}{given}>{text}</{name}>", NAMES, ATTRIBUTES, parts)


@given(st.lists(st.recursive(TEXTS, element, max_leaves=8), max_size=3).map("".join))
def test_the_fast_path_gives_what_beautiful_soup_gives(source: str) -> None:
    page = f"<html><body>{source}</body></html>"
    fast = normalized_html._uniform_well_formed(page)
    if fast is not None:
        slow = normalized_html._uniform_tags(page)
        assert unescape_after_serialising(fast) == unescape_after_serialising(slow)


def test_everyday_tables_take_the_fast_path() -> None:
    page = '<html><body><table><tr><th colspan="2">a &amp; <b>b</b></th></tr></table></body></html>'
    assert normalized_html._uniform_well_formed(page) == page.replace("th", "td")


@given(st.text(alphabet="<>/tabledhr= \"'&;#x0a\n", max_size=60))
def test_any_text_is_normalised_to_one_page(source: str) -> None:
    assert normalize_table(source).startswith('<html><body><table border="1" >')
