"""The one rule that HTML is split by: that of html.parser before its repairs of 2025, on any Python."""

from __future__ import annotations

import html.parser
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import loupe
from loupe.metrics.html_markup import html_tokens
from loupe.metrics.teds.table_tree import TableTooLargeError


class Official(html.parser.HTMLParser):
    """What the html.parser of this Python makes of a text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Any] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("start", tag, attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("empty", tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("end", tag))

    def handle_data(self, data: str) -> None:
        self.found.append(("text", data))

    def handle_charref(self, name: str) -> None:
        self.found.append(("number", name))

    def handle_entityref(self, name: str) -> None:
        self.found.append(("entity", name))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("doctype", decl))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("section", data))

    def handle_pi(self, data: str) -> None:
        self.found.append(("instruction", data))


def joined(tokens: list[Any]) -> list[Any]:
    """The tokens with neighbouring texts as one: how a text is cut up means nothing."""
    found: list[Any] = []
    for token in tokens:
        if token[0] == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + token[1])
        elif token != ("text", ""):
            found.append(token)
    return found


def outcome(markup: str, *, official: bool) -> Any:
    try:
        return joined(Official(markup).found if official else list(html_tokens(markup)))
    except AssertionError:
        return AssertionError


PIECES = st.sampled_from(
    [
        *(
            "<",
            ">",
            "/",
            "=",
            '"',
            "'",
            "&",
            ";",
            "#",
            "!",
            "-",
            "--",
            "[",
            "]",
            "?",
            " ",
            "\n",
            "\t",
            "\0",
            "\v",
            "\f",
        ),
        *("a", "b", "td", "TR", "x", "1", "é", "ſ", "İ", "&amp", "&amp;", "&#65", "&#x4a;", "&#;", "&lt", "&notit;"),
        *("<td", "<td>", "</td>", "</ td >", "<br/>", "<br //>", "</>", "</1>", "<!--", "-->", "-- >", "--!>", "->"),
        *("<!-->", "<!>", "<!doctype html>", "<!DOCTYPE", "<!x>", "<?php", "?>", "<![", "<![CDATA[", "]]>", "] ]\n>"),
        *(
            "<![if x]>",
            "<![endif]>",
            "]>",
            "<![no[",
            "<![temp",
            "<script>",
            "</script>",
            "</SCRIPT >",
            "<style",
            "</ſtyle>",
        ),
        *(
            ' a="1"',
            " a='1'",
            " a=1",
            " a= 1",
            " a =",
            ' a="1',
            " a='",
            ' a="1"b',
            " /a",
            ' a="&amp;"',
            " A",
            '="',
            "a<b",
        ),
    ]
)
MARKUP = st.lists(PIECES, max_size=14).map("".join)


CASES: list[tuple[str, list[Any]]] = [
    ('<TD Class="a&amp;b" nowrap x=1>', [("start", "td", [("class", "a&b"), ("nowrap", None), ("x", "1")])]),
    ("<br/><br //>", [("empty", "br", []), ("empty", "br", [])]),
    ("a<b", [("text", "a<b")]),
    ("a < b &cd", [("text", "a < b &cd")]),
    ("1 &x", [("text", "1 x")]),
    ("&lt&#65;&#x41 ", [("entity", "lt"), ("number", "65"), ("number", "x41"), ("text", " ")]),
    ("&#; <b> &#; <b>", [("text", "&#; "), ("start", "b", []), ("text", " &#; <b>")]),
    ("<!-- a --!> b --  >c", [("comment", " a --!> b "), ("text", "c")]),
    ("<!-- a", [("text", "<!-- a")]),
    ("<!--><b>", [("text", "<!-->"), ("start", "b", [])]),
    ("<![CDATA[a<b]]>c", [("section", "CDATA[a<b"), ("text", "c")]),
    ("<![CDATA[a>b", [("text", "<![CDATA[a>b")]),
    ("<![if mso]>a<![endif]>", [("section", "if mso"), ("text", "a"), ("section", "endif")]),
    ("<!doctype html><?pi x>", [("doctype", "doctype html"), ("instruction", "pi x")]),
    ("<!x></1></>", [("comment", "x"), ("comment", "1")]),
    ("<script>a</b></script >c", [("start", "script", []), ("text", "a</b>"), ("end", "script"), ("text", "c")]),
    ("<script>lost", [("start", "script", [])]),
    ("<textarea><b></textarea>", [("start", "textarea", []), ("start", "b", []), ("end", "textarea")]),
    ('<td a="1>2</td>', [("text", '<td a="1>'), ("text", "2"), ("end", "td")]),
    ("</td", [("text", "</td")]),
]
#: Whether the html.parser of this Python has the rule, too.
IS_OF_THE_RULE = all(outcome(markup, official=True) == joined(tokens) for markup, tokens in CASES)


@pytest.mark.skipif(not IS_OF_THE_RULE, reason="this Python reads malformed markup by another rule")
@given(MARKUP)
@settings(max_examples=3000)
@example("&a")
@example("&#;&#;<b>")
@example("<script></ſcript></script>")
@example('<a x="1>')
def test_it_is_the_html_parser_of_before(markup: str) -> None:
    assert outcome(markup, official=False) == outcome(markup, official=True)


@pytest.mark.parametrize(("markup", "tokens"), CASES)
def test_it_is_the_same_on_every_python(markup: str, tokens: list[Any]) -> None:
    assert joined(list(html_tokens(markup))) == joined(tokens)


def test_no_pattern_has_a_possessive_group_which_python_before_3_11_5_matches_wrongly() -> None:
    root = Path(loupe.__file__).parent
    found = [
        f"{file.relative_to(root)}: {line.strip()}"
        for file in root.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"(?<!\\)[)][*+?][+]|(?<!\\)[)]\{\d*,?\d*\}[+]", line) and not line.lstrip().startswith("#")
    ]
    assert not found, "write (?>(?:…)*) for (?:…)*+"


def test_a_section_of_no_known_kind_is_refused() -> None:
    for markup in ("<![no[x]]>", "<![ >", "a<![1]>"):
        with pytest.raises(AssertionError, match="no section begins like"):
            list(html_tokens(markup))


def test_tags_that_never_end_are_read_in_time_or_refused() -> None:
    for piece in ("<!-- ", "<![CDATA[ ", "<? ", "</a ", "<!x ", "&#", "<a>", "<![if "):
        assert (
            sum(len(token[1]) for token in html_tokens(piece * 100_000) if token[0] == "text") <= len(piece) * 100_000
        )
    with pytest.raises(TableTooLargeError, match="too many tags that never end"):
        list(html_tokens("<a b " * 100_000))
