"""What is left of an answer becomes text: code blocks, unwrapped headings, paragraphs.

Protocol: docs/protocols/omnidocbench.md#code-blocks to #paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.delimiters import blank

_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def take_code_blocks(text: str) -> tuple[list[Item], str]:
    """Code between a fence with a word and the next fence, also in a line (#code-blocks); blanks in its place."""
    items = [
        Item(
            category="text_all",
            content=match[2].strip(),
            start=match.start(),
            end=match.end(),
            fine_category="code",
            language=match[1],
        )
        for match in _CODE.finditer(text)
    ]
    return items, blank(text, [(item.start, item.end) for item in items])


class _Wrapper(NamedTuple):
    command: re.Pattern[str]
    one_line: bool


_WRAPPERS: Sequence[_Wrapper] = (
    _Wrapper(re.compile(r"\\title\{"), True),
    _Wrapper(re.compile(r"\\title\s*\{"), False),
    _Wrapper(re.compile(r"\\text\s*\{"), False),
    _Wrapper(re.compile(r"\\section\*?\{"), True),
    _Wrapper(re.compile(r"\\section\*?\{"), False),
)
"""Commands that give way to what they hold, in the official order; those on one line keep the blanks around it."""


def unwrap_headings(text: str) -> str:
    r"""Unwrap `\title{…}`, `\text{…}` and `\section{…}`, up to the first closing brace (#latex-headings)."""
    for wrapper in _WRAPPERS if "\\" in text else ():
        text = _unwrap(text, wrapper)
    return text


def _unwrap(text: str, wrapper: _Wrapper) -> str:
    parts: list[str] = []
    cursor = search_from = 0
    while match := wrapper.command.search(text, search_from):
        limit = text.find("\n", match.end()) if wrapper.one_line else -1
        limit = len(text) if limit < 0 else limit
        brace = text.find("}", match.end(), limit)
        if brace < 0:
            search_from = limit
            continue
        inside = text[match.end() : brace]
        parts += (text[cursor : match.start()], inside if wrapper.one_line else inside.strip())
        cursor = search_from = brace + 1
    return "".join([*parts, text[cursor:]])


def paragraphs(text: str) -> list[Item]:
    """The pieces between empty lines; where there is none, the lines (#paragraphs)."""
    items = []
    for piece in text_pieces(text):
        if category := _category(piece.inside):
            fine_category = "text_block" if category == "text_all" else ""
            items.append(
                Item(
                    category=category,
                    content=piece.inside,
                    start=piece.start,
                    end=piece.end,
                    fine_category=fine_category,
                )
            )
    return items


class TextPiece(NamedTuple):
    """A piece of text: where it stands for the official evaluator, and its lines without blanks around them."""

    start: int
    end: int
    inside: str


def text_pieces(text: str) -> list[TextPiece]:
    """The pieces between empty lines, or the lines; those with nothing in them are left out."""
    raw_pieces = text.split("\n" if is_split_by_lines(text) else "\n\n")
    found = []
    for raw, start in zip(raw_pieces, starts_without_separators(raw_pieces), strict=True):
        inside = "\n".join(filter(None, (line.strip() for line in raw.strip().split("\n"))))
        if inside:
            found.append(TextPiece(start, start + len(raw), inside))
    return found


def is_split_by_lines(text: str) -> bool:
    """Without an empty line every line is a piece (#paragraphs)."""
    return "\n\n" not in text


def starts_without_separators(raw_pieces: Sequence[str]) -> list[int]:
    """Where pieces start for the official evaluator, which does not count the newlines between them (#paragraphs)."""
    starts, start = [], 0
    for raw in raw_pieces:
        starts.append(start)
        start += len(raw)
    return starts


def _category(piece: str) -> str:
    """A piece's category; "" for dollars without a formula, which are dropped."""
    if piece.startswith("<table") and piece.endswith("</table>"):
        return "html_table"
    if piece.startswith("$") and piece.endswith("$"):
        return "equation_isolated" if piece.replace("$", "").strip() else ""
    return "text_all"
