"""A text in pieces that can be exchanged one by one while every line stays as long as it was."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

Kind: TypeAlias = Literal["word", "name", "number", "mark", "gap"]

#: Around a name that may be exchanged for another.
NAME_BEGINS, NAME_ENDS = "\ue000", "\ue001"
_PIECE = re.compile(
    rf"{NAME_BEGINS}(?P<name>[^{NAME_ENDS}]*){NAME_ENDS}|(?P<gap>\s+)|(?P<number>\d+)|(?P<word>[^\W\d_]"
    rf"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f])*)|(?P<mark>.)",
    re.DOTALL,
)
#: A letter with all that is written on it; in Indic scripts with the consonants that it is joined to.
_CLUSTER = re.compile(r"(?:.\u094d)*.[\u0300-\u036f\u0900-\u0903\u093a-\u094c\u094e\u094f]*")
_DENSE = re.compile("[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]")
#: What begins no line.
_CLOSING = frozenset("，。、；：！？）」』”")


class Token(NamedTuple):
    """A word, a name, a number, a mark of punctuation, or a space, at which a line may end."""

    text: str
    kind: Kind


Text: TypeAlias = list[Token]


def tokens_of(text: str) -> Text:
    """The pieces of a text; a character of a script without spaces is a piece of its own.

    >>> [token.kind for token in tokens_of("A week has 7 days.")]
    ['word', 'gap', 'word', 'gap', 'word', 'gap', 'number', 'gap', 'word', 'mark']
    """
    found: Text = []
    for match in _PIECE.finditer(unicodedata.normalize("NFC", text)):
        kind = cast("Kind", match.lastgroup)
        piece = match[kind]
        if kind == "gap":
            found.append(Token(" ", "gap"))
        elif kind in ("word", "name") and _DENSE.search(piece):
            found += [Token(letter, kind) for letter in piece]
        else:
            found.append(Token(piece, kind))
    return found


def clusters(word: str) -> list[str]:
    """The letters of a word, each with what is written on it."""
    return _CLUSTER.findall(word)


def text_of(tokens: Iterable[Token]) -> str:
    """The pieces as a text."""
    return "".join(token.text for token in tokens)


def width(text: str) -> float:
    """About how wide a text is, in em of a book face; combining signs take no place."""
    return sum(map(_em, text))


@functools.cache
def _em(letter: str) -> float:
    if unicodedata.combining(letter) or unicodedata.category(letter) == "Mn":
        return 0.0
    if letter in " iljtfrI.,;:'!|()’-":
        return 0.32
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "mwMW@%—" or "\u0900" <= letter <= "\u097f":
        return 0.86
    return 0.7 if letter.isupper() else 0.53


def lines_of(text: Sequence[Token], most: float) -> list[Text]:
    """The text in lines of at most `most` em; a line ends at a gap, or between characters written without spaces.

    A gap at the end of a line keeps its place in it, so that all lines together are the text.
    """
    lines: list[Text] = [[]]
    used = 0.0
    for unit in _units(text):
        seen = width(text_of(unit[:-1] if unit[-1].kind == "gap" else unit))
        if used + seen > most and used:
            lines.append([])
            used = 0.0
        lines[-1] += unit
        used += seen + (width(unit[-1].text) if unit[-1].kind == "gap" else 0.0)
    return lines


def _units(text: Sequence[Token]) -> Iterable[Text]:
    """What stays on one line: up to and with the next gap, or one character of a script without spaces."""
    unit: Text = []
    for place, token in enumerate(text):
        unit.append(token)
        following = text[place + 1].text if place + 1 < len(text) else ""
        dense = _DENSE.match(token.text) and following not in _CLOSING and _DENSE.match(following or " ")
        if token.kind == "gap" or dense:
            yield unit
            unit = []
    if unit:
        yield unit


def like(lines: Sequence[Text], changed: Sequence[Token]) -> list[Text]:
    """Another text of as many pieces in the same lines."""
    found, place = [], 0
    for line in lines:
        found.append(list(changed[place : place + len(line)]))
        place += len(line)
    return found


def strings(lines: Iterable[Text]) -> list[str]:
    """Lines as they are typeset."""
    return [text_of(line).strip() for line in lines]
