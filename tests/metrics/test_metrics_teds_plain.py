"""Plain tables read without a parser: the same trees as libxml2 makes, and what is left to the parser."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.metrics.teds import VARIANTS, Variant, compare_tables
from loupe.metrics.teds.table_tree import (
    TableTree,
    TedsError,
    Vocabulary,
    build_plain_tree,
    build_tree,
    is_plain,
    parse_table,
)

CHARACTERS = "ab1 .\t\n'\">/=-\xa0é\u2028\u3000\ufeff\ufffd√\U0001f600"
SPACES = st.sampled_from(["", " ", "\n", "\n\t "])
TEXTS = st.text(CHARACTERS, max_size=6)
PARTS = st.builds(lambda tag, text: f"<{tag}>{text}</{tag}>", st.sampled_from(["b", "i", "sup", "sub"]), TEXTS)
ATTRIBUTES = st.lists(
    st.sampled_from(
        (
            *(' colspan="2"', ' rowspan="3"', ' colspan=" 4 "', ' class="a b"', ' style=""', ' colspan="-1"'),
            *(' x=" colspan="', ' y="\'"', ' rowspan="٣"', ' rowspan="1_0"'),
        )
    ),
    max_size=3,
).map("".join)
CELLS = st.builds(
    lambda attributes, texts, space: f"<td{attributes}>{''.join(texts)}</td>{space}",
    ATTRIBUTES,
    st.lists(TEXTS | PARTS, max_size=3),
    SPACES,
)
HEADERS = st.builds("<th{}>{}</th>{}".format, ATTRIBUTES, TEXTS, SPACES)
ROWS = st.lists(
    st.builds(
        lambda space, cells, end: f"<tr>{space}{''.join(cells)}</tr>{end}",
        SPACES,
        st.lists(CELLS | HEADERS, max_size=4),
        SPACES,
    ),
    max_size=4,
).map("".join)
SECTIONS = st.lists(
    st.builds("<{0}>{1}{2}</{0}>{1}".format, st.sampled_from(["thead", "tbody", "tfoot"]), SPACES, ROWS), max_size=3
).map("".join)
PAGES = st.builds(
    "<html>{0}<body>{0}<table{1}>{0}{2}</table>{0}</body>{0}</html>{0}".format, SPACES, ATTRIBUTES, ROWS | SECTIONS
)


def lists(tree: TableTree) -> tuple[list[int], list[int], list[int], list[int], int]:
    return tree.labels, tree.contents, tree.counts, tree.first, tree.elements


@settings(max_examples=500)
@given(PAGES)
def test_a_plain_page_has_the_tree_that_libxml2_makes(page: str) -> None:
    assert is_plain(page)
    table = parse_table(page)
    assert table is not None
    vocabulary = Vocabulary()
    assert lists(build_plain_tree(page, vocabulary)) == lists(build_tree(table, vocabulary))


PLAIN = "<html><body><table><tr><td>a</td></tr></table></body></html>"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(
            (">a<", f">{text}<")
            for text in ("&lt;", "\r", "\0", "\x85", "\ud800", "<br>", "<b><i>x</i></b>", "<!--x-->")
        ),
        *(
            (">a<", f">{text}<")
            for text in ("<b>x", "x</b>", "<b>x</i>", "<p>x</p>", "<td>x</td>", "<B>x</B>", "<b >x</b>")
        ),
        *(
            ("<td>", f"<td{attributes}>")
            for attributes in (" colspan=2", " colspan='2'", ' COLSPAN="2"', ' a="1"b="2"')
        ),
        *(
            ("<tr>", tag)
            for tag in ("<tr class='x'>", "<TR>", "x<tr>", "\xa0<tr>", "<tr>x", "<tr><tr>", "<caption></caption><tr>")
        ),
        ("</td>", ""),
        ("</tr>", ""),
        ("</tr>", "</tr><tbody></tbody>"),
        ("</table>", ""),
        ("</table>", "</table><table></table>"),
        ("</table>", "</table>x"),
        ("<html>", "<!DOCTYPE html><html>"),
        ("<html>", "\ufeff<html>"),
        ("<body>", "<head></head><body>"),
        ("<td>a</td>", "<th><b>a</b></th>"),
    ],
)
def test_any_other_page_is_left_to_the_parser(old: str, new: str) -> None:
    assert is_plain(PLAIN)
    assert old in PLAIN
    assert not is_plain(PLAIN.replace(old, new))


def test_a_page_beyond_the_bound_is_left_to_the_parser() -> None:
    assert not is_plain(PLAIN.replace("a", "a" * 1_000_000))


def test_a_span_that_is_no_number_is_refused_as_upstream() -> None:
    page = PLAIN.replace("<td>", '<td colspan="two">')
    assert is_plain(page)
    with pytest.raises(TedsError, match="colspan='two'"):
        compare_tables(page, PLAIN, variant="omnidocbench")


@pytest.mark.parametrize("variant", VARIANTS)
@given(pair=st.tuples(PAGES, PAGES))
@settings(max_examples=30)
def test_scores_do_not_depend_on_who_reads_the_page(variant: Variant, pair: tuple[str, str]) -> None:
    try:
        plain = compare_tables(*pair, variant=variant)
        parsed = compare_tables(*(page.replace("<table", "<!-- x --><table") for page in pair), variant=variant)
    except TedsError as error:
        assert error.upstream == "ZeroDivisionError"
        return
    assert (plain.teds, plain.teds_struct) == (parsed.teds, parsed.teds_struct)
