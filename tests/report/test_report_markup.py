"""Sanitising: what is left of hostile markup, and what a reader still sees of an honest one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.report.markup import RENDERED_LIMIT, render_markdown, sanitize

ALLOWED = {"colspan", "rowspan", "scope", "start", "span", "title", "data-kind"}
MARKS = ["<", ">", '"', "'", "`", "&", "=", "/", "!--", "-->", "](", "![", "$", "\\(", "\\[", "\n", "\n\n", "> ", "- "]
WORDS = [
    "script",
    "img",
    "a",
    "svg",
    "style",
    "math",
    "table",
    "td",
    " onerror=",
    " href=",
    "javascript:",
    "\0",
    "\ud800",
]
FORBIDDEN = re.compile(r"</?(script|img|svg|style|math|iframe|object|form|input|link|meta|base)\b", re.IGNORECASE)
hostile = st.lists(st.sampled_from(MARKS + WORDS), max_size=40).map("".join)


def tags(html: str) -> list[str]:
    return re.findall(r"<[^>]*>", html)


@given(hostile)
def test_only_harmless_elements_and_attributes_are_left(text: str) -> None:
    for tag in tags(render_markdown(text).html):
        assert not FORBIDDEN.match(tag)
        assert set(re.findall(r'\s([\w-]+)="', tag)) <= ALLOWED


@given(hostile)
def test_sanitised_html_is_its_own_sanitised_form_but_for_titles(text: str) -> None:
    clean = sanitize(text)
    assert sanitize(clean) == re.sub(r'<a title="[^"]*">', "<a>", clean)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("# Title", "<h1>Title</h1>"),
        ("| a |\n|---|\n| b |", "<td>b</td>"),
        ("<table><tr><td colspan='2' style='x'>a</td></tr></table>", '<td colspan="2">a</td>'),
        ("[text](https://example.org/a)", '<a title="https://example.org/a">text</a>'),
        ("![a cat](cat.png)", '<code data-kind="image">image: a cat</code>'),
        ("one\ntwo", "one<br>\ntwo"),
        ("$a_b_c$", '<code data-kind="math">a_b_c</code>'),
        (r"\(x < y\)", '<code data-kind="math">x &lt; y</code>'),
        ("$$\n\\frac{a}{b}\n$$", '<code data-kind="math-block">\\frac{a}{b}</code>'),
        ("it costs $5 and $6", "it costs $5 and $6"),
    ],
)
def test_honest_markup_is_kept(markdown: str, html: str) -> None:
    assert html in render_markdown(markdown).html


def test_a_text_is_cut_at_the_limit_with_a_notice() -> None:
    rendered = render_markdown("word " * RENDERED_LIMIT)
    assert len(rendered.html) < RENDERED_LIMIT + 20
    assert rendered.notice == "Only the first 100,000 of 500,000 characters are rendered."


@pytest.mark.parametrize("text", ["<div>" * 1000 + "deep", "> " * 1000 + "deep", "<i>a</i>" * 40_000])
def test_what_is_nested_too_deep_or_too_much_is_not_rendered_and_says_so(text: str) -> None:
    assert render_markdown(text).notice != ""
