"""Markdown as HTML, by the rules that every engine that answers in Markdown is converted with.

Protocol: docs/protocols/omni_parse_bench.md#markdown. What a plain conversion would lose of a page is held out of it:
numbers and bullets of lists, tables, formulas, addresses in angle brackets.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from loupe.benchmarks.omni_parse_bench.text.spans import Held, Mark, between, replaced

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FENCE = re.compile(r"[ \t]*```([A-Za-z]*)[ \t]*")
_PAGES = frozenset(("", "markdown", "md", "html"))
_FRONT_MATTER = re.compile(r"^\s*---[ \t]*\n(?:[ \t]*[A-Za-z_][\w-]*:.*\n)+---[ \t]*(?:\n|$)")
_NAMES = (
    "figure|table|div|details|section|aside|p|pre|blockquote|ul|ol|li|dl|center|form|header|footer|article|main|nav|"
    "fieldset|figcaption"
)
_ELEMENT = re.compile(rf"<({_NAMES})\b", re.I)
_ELEMENT_ENDS = {name: re.compile(rf"</{name}\s*>", re.I) for name in _NAMES.split("|")}
_CODE = re.compile(r"(?m)^[ \t]*```[^\n]*\n|`[^`\n]+`")
_FENCE_END = re.compile(r"(?m)^[ \t]*```[ \t]*$")
_NUMBERED = re.compile(r"(?m)^([ \t]{0,3}\d{1,9})([.)])(?=[ \t]|$)")
_BULLETED = re.compile(r"(?m)^([ \t]{0,3})([-+*])(?=[ \t])")
_ADDRESS = re.compile(r"<(?=[^<>\s@]+@[^<>\s@]+>)")
_TABLE, _TABLE_END = re.compile(r"<table\b", re.I), re.compile("</table>", re.I)
_DISPLAYED = re.compile(r"\$\$|\\\[")
_DISPLAYED_ENDS = {"$$": re.compile(r"\$\$"), "\\[": re.compile(r"\\\]")}
_LINES_OF_ROWS = re.compile(r"(?m)((?:^[ \t]*\|.*(?:\n|$))+)")
_IN_LINE = re.compile(r"(?<!\\)\$(?!\s)[^$\n]+?(?<![\s\\])\$|\\\(")
#: In a row of a table, dollars on both sides of a bar are amounts, unless there is LaTeX between them.
_IN_ROW = re.compile(r"(?<!\\)\$(?!\s)(?:(?=[^$\n]*[\\^_{])[^$\n]+?|[^$\n|]+?)(?<![\s\\])\$|\\\(")
_PARENTHESIS_END = re.compile(r"\\\)")


def html_of_markdown(markdown: str) -> str:
    """The HTML of a page. Raises GradingError where the official converter raises."""
    text = textwrap.dedent(_FRONT_MATTER.sub("", unwrapped(markdown), count=1))
    return _rendered(_with_escaped_marks(text))


def unwrapped(text: str) -> str:
    """Without a fence around the whole page, which may lack its end; a listing of code within the page stays."""
    lines = text.strip().split("\n")
    first = _FENCE.fullmatch(lines[0])
    if first is None or first[1].lower() not in _PAGES:
        return text
    fences = [number for number, line in enumerate(lines) if _FENCE.fullmatch(line)]
    if len(fences) % 2:
        return "\n".join(lines[1:])
    ends_page = fences[-1] == len(lines) - 1
    return "\n".join(lines[1 : fences[-1]]) if first[1] or ends_page else text


def _with_escaped_marks(text: str) -> str:
    """Marks of lists stay the text that is printed; within code and HTML no escape would be read as one."""
    held = Held()
    text = _held(text, between(text, _ELEMENT, lambda mark: _ELEMENT_ENDS[mark[1].casefold()]), held)
    text = _held(text, _with_ends(text, _CODE, _FENCE_END), held)
    text = _BULLETED.sub(r"\1\\\2", _NUMBERED.sub(r"\1\\\2", text))
    return held.put_back(_ADDRESS.sub("&lt;", text))


def _rendered(text: str) -> str:
    """Tables and formulas stay as they are: Markdown ends the ones at blank lines, and eats braces of the others."""
    held = Held()
    text = _held(text, between(text, _TABLE, _TABLE_END), held)
    text = _held(text, between(text, _DISPLAYED, lambda mark: _DISPLAYED_ENDS[mark[0]], least=1), held)
    parts = _LINES_OF_ROWS.split(text)  # text, rows, text, rows and so on
    for number, part in enumerate(parts):
        parts[number] = _held(part, _with_ends(part, _IN_ROW if number % 2 else _IN_LINE, _PARENTHESIS_END), held)
    return held.put_back(str(_renderer().render("".join(parts))))


def _held(text: str, spans: Iterator[tuple[Mark, Mark]], held: Held) -> str:
    return replaced(text, spans, lambda start, end: held.keep(text[start.start() : end.end()]))


def _with_ends(text: str, pattern: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[tuple[Mark, Mark]]:
    """Spans that the pattern finds whole, and those of which it finds the beginning: a fence, or a parenthesis."""
    position, closes = 0, True
    while found := pattern.search(text, position):
        begins = found[0].endswith(("\n", "\\("))
        end = closing.search(text, found.end() + (closing is _PARENTHESIS_END)) if begins and closes else None
        if begins and end is None:
            closes, position = False, found.start() + 1
            continue
        yield found, end or found
        position = (end or found).end()


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("reference")
