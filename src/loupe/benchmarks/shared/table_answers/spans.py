"""Where things stand in a text: HTML tables, tags, LaTeX environments, Markdown links.

These are the matches of the regular expressions that the protocols name, found in time linear in the text: answers are
hostile, and `<table[^>]*>.*?</table>` alone needs minutes for a megabyte of `<table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TABLE_START = re.compile("<table", re.IGNORECASE)
_TABLE_END = re.compile("</table>", re.IGNORECASE)


class Span(NamedTuple):
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


class Link(NamedTuple):
    """A Markdown link or image, from `start` up to `end`, and the text in its brackets."""

    start: int
    end: int
    label: str


def html_tables(text: str) -> Iterator[Span]:
    """Every `<table[^>]*>.*?</table>`: the shortest, in any case, across lines."""
    position = 0
    while start := _TABLE_START.search(text, position):
        inside = text.find(">", start.end())
        end = _TABLE_END.search(text, inside + 1) if inside >= 0 else None
        if end is None:
            return
        yield Span(start.start(), end.end())
        position = end.end()


def tags(text: str) -> Iterator[Span]:
    """Every `<[^>]+>`."""
    position = 0
    while (start := text.find("<", position)) >= 0:
        if text[start + 1 : start + 2] == ">":
            position = start + 2
            continue
        end = text.find(">", start + 1)
        if end < 0:
            return
        yield Span(start, end + 1)
        position = end + 1


def between(text: str, opening: str, closing: str) -> Iterator[Span]:
    """Every part from a literal up to the next closing literal, both included."""
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            return
        position = end + len(closing)
        yield Span(start, position)


def environments(text: str, name: str) -> Iterator[Span]:
    r"""Every `\begin{name}..\end{name}`; the first end closes."""
    return between(text, f"\\begin{{{name}}}", f"\\end{{{name}}}")


def links(text: str, mark: str) -> Iterator[Link]:
    r"""Every `mark` + `[^\]]*` + `](` + `[^)]*` + `)`: links for the mark `[`, images for `![`."""
    position, bracket, end = 0, -1, -1
    while (start := text.find(mark, position)) >= 0:
        inside = start + len(mark)
        # A bracket found before stays the next one, so that a megabyte of `[` is read once.
        bracket = bracket if bracket >= inside else text.find("]", inside)
        if bracket < 0:
            return
        if text[bracket + 1 : bracket + 2] != "(":
            position = start + 1
            continue
        end = end if end >= bracket + 2 else text.find(")", bracket + 2)
        if end < 0:
            return
        yield Link(start, end + 1, text[inside:bracket])
        position = end + 1


def replace(text: str, spans: Iterable[Span | Link], by: str = "") -> str:
    """The text with something else in place of the given parts, which are in order and do not overlap."""
    parts = []
    position = 0
    for span in spans:
        parts += [text[position : span.start], by]
        position = span.end
    return "".join([*parts, text[position:]])


def unlink(text: str) -> str:
    """The text with its Markdown links replaced by what stands in their brackets."""
    parts = []
    position = 0
    for link in links(text, "["):
        parts += [text[position : link.start], link.label]
        position = link.end
    return "".join([*parts, text[position:]])
