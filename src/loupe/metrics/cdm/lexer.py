"""Tokens of a formula, one at a time: what a character means depends on what is being read.

Protocol: docs/protocols/cdm.md#parser. Positions are code points; the official lexer counts UTF-16 units, which
shows nowhere but in `\\mathrm` (printer.py).
"""

from __future__ import annotations

import re
from typing import Final

END: Final = "EOF"  # no token of a text reads like this: they are one character or start with a backslash
_SPACE: Final = r"[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"  # JavaScript's \s
_BEYOND: Final = r"\U00010000-\U0010ffff"
_COMMAND: Final = rf"\\(?:[a-zA-Z]+|[^\ud800-\udfff{_BEYOND}])"
_SYMBOL: Final = rf"(---?|[!-\[\]-\u2027\u202a-\ud7ff\uf900-\uffff{_BEYOND}]|{_COMMAND})"
_MATH = re.compile(rf"[ \r\n\t]*+(?:{_SYMBOL}|\Z)")
_TEXT = re.compile(rf"([ \r\n\t]++)|{_SYMBOL}|\Z")
_COLOUR = re.compile(rf"{_SPACE}*+(#[a-zA-Z0-9]+|[a-zA-Z]+)")
_SIZE = re.compile(rf"{_SPACE}*+((-?){_SPACE}*+([0-9]+(?:\.[0-9]*)?|\.[0-9]+){_SPACE}*+([a-z][a-z]))")
_SPACES = re.compile(rf"{_SPACE}*+")


class NotTokenizedError(Exception):
    """The official tokenizer throws on this text and prints nothing."""


def next_in_math(text: str, position: int) -> tuple[str, int]:
    """The next token in math mode and where it ends."""
    found = _MATH.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no token starts at character {position}")
    return found[1] or END, found.end()


def next_in_text(text: str, position: int) -> tuple[str, int]:
    """The next token in text mode, where a run of blanks is a token of its own, and where it ends."""
    found = _TEXT.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no token starts at character {position}")
    return " " if found[1] else found[2] or END, found.end()


def colour_at(text: str, position: int) -> tuple[str, int]:
    """A colour and where it ends."""
    found = _COLOUR.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no colour at character {position}")
    return found[1], found.end()


def size_at(text: str, position: int) -> tuple[str, float, str, int]:
    """A length as written, its number and unit, and where it ends."""
    found = _SIZE.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no length at character {position}")
    return found[1], float(found[2] + found[3]), found[4], found.end()


def after_spaces(text: str, position: int) -> int:
    """The first position that is not white space in JavaScript's sense."""
    found = _SPACES.match(text, position)
    return found.end() if found else position
