"""Lazy patterns `begin … end`, found in time linear in the text; a regex with a lazy middle needs quadratic time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple


class Delimiters(NamedTuple):
    """What begins and ends a piece."""

    begin: str
    end: str


class Piece(NamedTuple):
    """A piece of a text with its delimiters; `kind` is the number of the pair that matched."""

    start: int
    end: int
    inside: str
    kind: int


def pieces(text: str, pairs: Sequence[Delimiters], *, one_line: bool = False) -> Iterator[Piece]:
    """The leftmost matches of `begin(.*?)end`, the pairs tried in their order; `one_line` lets none cross a newline.

    >>> [piece.inside for piece in pieces("a $b$ $$", [Delimiters("$", "$")])]
    ['b', '']
    """
    opening = _opening(tuple(pairs))
    missing = [-1] * len(pairs)  # there is no end of this pair up to here
    match = opening.search(text)
    while match:
        start = match.start()
        cursor = start + 1
        for kind, (begin, end) in enumerate(pairs):
            inside = start + len(begin)
            if inside <= missing[kind] or not text.startswith(begin, start):
                continue
            limit = _end_of_line(text, inside) if one_line else len(text)
            found = text.find(end, inside, limit)
            if found >= 0:
                cursor = found + len(end)
                yield Piece(start, cursor, text[inside:found], kind)
                break
            missing[kind] = limit
        match = opening.search(text, cursor)


@cache
def _opening(pairs: tuple[Delimiters, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pair.begin) for pair in pairs))


def _end_of_line(text: str, start: int) -> int:
    newline = text.find("\n", start)
    return len(text) if newline < 0 else newline


def with_replacements(text: str, pairs: Iterable[Piece], replacements: Iterable[str]) -> str:
    """The text with each piece replaced."""
    parts: list[str] = []
    cursor = 0
    for piece, replacement in zip(pairs, replacements, strict=True):
        parts += (text[cursor : piece.start], replacement)
        cursor = piece.end
    return "".join([*parts, text[cursor:]])


def replaced(text: str, delimiters: Delimiters, replacement: str, *, one_line: bool = False) -> str:
    """The text with all pieces between these delimiters replaced.

    >>> replaced("a <!-- b --> c", Delimiters("<!--", "-->"), "")
    'a  c'
    """
    if delimiters.begin not in text:
        return text
    found = list(pieces(text, [delimiters], one_line=one_line))
    return with_replacements(text, found, [replacement] * len(found))


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with as many spaces where something was taken out, so that offsets hold.

    >>> blank("abcdef", [(1, 3), (2, 4)])
    'a   ef'
    """
    parts: list[str] = []
    cursor = 0
    for start, end in sorted(spans):
        if end > cursor:
            begin = max(start, cursor)
            parts += (text[cursor:begin], " " * (end - begin))
            cursor = end
    return "".join([*parts, text[cursor:]])
