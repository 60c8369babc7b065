"""Find delimited pieces of text in linear time: lazy patterns, balanced braces, outermost tags.

A regex with a lazy middle needs quadratic time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple


class Delimiters(NamedTuple):
    """The marks that begin and end a piece."""

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


_BRACE = re.compile("[{}]")
#: Characters that may be looked at while a text changes pass by pass; a page has a hundredth.
_MOST_LOOKS: Final = 20_000_000


def closing_braces(text: str) -> dict[int, int]:
    r"""For the offset of each opening brace that of its closing one; every brace counts, escaped ones too.

    >>> closing_braces("a{b{c}}{")
    {3: 5, 1: 6}
    """
    found: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            found[opened.pop()] = brace.start()
    return found


def passes_over(text: str) -> range:
    """The passes that may be made over a text until it is stable: fewer than it needs for a hostile one alone."""
    return range(8 + _MOST_LOOKS // (len(text) + 1))


#: How far behind a begin mark that is never closed the official search starts again: the length of its regex.
RESTART = 16


def outermost(begins: list[int], ends: list[int], *, step: int) -> list[tuple[int, int]]:
    """The spans from an outermost begin mark to `step` characters behind the start of its end mark, ascending.

    `begins` and `ends` are the sorted offsets of all marks. The official search goes on `step` characters behind the
    start of each mark, whatever its length, and so overlooks marks that start before; when a begin mark is never
    closed, all begins again RESTART characters behind the outermost of these.
    """
    marks = sorted([(begin, True) for begin in begins] + [(end, False) for end in ends])
    offsets = [offset for offset, _ in marks]
    following = [bisect_left(offsets, offset + step) for offset in offsets]
    closing = _closing_marks([begins for _, begins in marks], following)
    spans, mark = [], 0
    while mark < len(marks):
        offset, begins_here = marks[mark]
        if not begins_here:
            mark = following[mark]
        elif closing[mark] < 0:
            mark = bisect_left(offsets, offset + RESTART)
        else:
            end = closing[mark]
            spans.append((offset, offsets[end] + step))
            mark = following[end]
    return spans


def _closing_marks(begins: list[bool], following: list[int]) -> list[int]:
    """For each begin mark the end mark that closes it, or -1."""
    closing = [-1] * len(begins)
    first_unopened = [-1] * (len(begins) + 1)  # the first end mark from here on that nothing from here on opens
    for mark in reversed(range(len(begins))):
        if begins[mark]:
            closing[mark] = end = first_unopened[following[mark]]
            first_unopened[mark] = first_unopened[following[end]] if end >= 0 else -1
        else:
            first_unopened[mark] = mark
    return closing
