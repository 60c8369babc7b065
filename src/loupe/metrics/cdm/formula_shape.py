r"""What the braces, `\left`s and environments of a coloured formula say without TeX: whether all are closed.

Nothing is decided by it. Formulas that look whole are set together, the others where they can do no harm; and where a
colour's argument never ends, it says what TeX is to be asked (see `broken_formulas`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PIECE: Final = re.compile(
    r"(?P<colour>\\mathcolor\[RGB\]\{\d+,\d+,\d+\}\{)"
    r"|\\(?P<turn>begin|end)\s*\{\s*(?P<name>[A-Za-z]*\*?)\s*\}|(?P<side>\\(?:left|right)(?![A-Za-z]))"
    r"|\\(?:[A-Za-z]+|.)|(?P<brace>[{}])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Begun:
    r"""A formula up to the `\mathcolor` whose argument never ends, and what closes that which is open there."""

    start: str
    closing: str


@dataclass(frozen=True, slots=True)
class _Open:
    at: int
    closing: str
    is_colour: bool = False


def is_whole(tex: str) -> bool:
    """Whether everything that is opened is closed in its turn, as far as is seen."""
    opened: list[_Open] = []
    for found in _pieces(tex):
        if (one := _opening(found)) is not None:
            opened.append(one)
        elif (closing := _closing(found)) and (not opened or opened.pop().closing != closing):
            return False
    return not opened


def begun(tex: str) -> Begun | None:
    """Where the argument of the first colour begins that no brace ends; None where there is none."""
    if "%" in tex.replace(r"\%", ""):
        return None  # what follows on the line is no part of the formula
    braces: list[_Open] = []
    for found in _pieces(tex):
        one = _opening(found)
        if one is not None and one.closing == "}":
            braces.append(one)
        elif found["brace"] == "}" and braces:
            braces.pop()
    at = next((one.at for one in braces if one.is_colour), -1)
    return None if at < 0 else Begun(tex[:at], "".join(_still_open(tex[:at])))


def _still_open(tex: str) -> Iterator[str]:
    """What would close everything that is open, the innermost first."""
    opened: list[str] = []
    for found in _pieces(tex):
        if (one := _opening(found)) is not None:
            opened.append(one.closing)
        elif opened and opened[-1] == _closing(found):
            opened.pop()
    return (r"\right." if closing == r"\right" else closing for closing in reversed(opened))


def _pieces(tex: str) -> Iterator[re.Match[str]]:
    """All that opens or closes something; commands and escaped braces are passed over."""
    return (found for found in _PIECE.finditer(tex) if found.lastgroup)


def _opening(found: re.Match[str]) -> _Open | None:
    if found["colour"] or found["brace"] == "{":
        return _Open(found.start(), "}", bool(found["colour"]))
    if found["turn"] == "begin":
        return _Open(found.start(), rf"\end{{{found['name']}}}")
    return _Open(found.start(), r"\right") if found["side"] == r"\left" else None


def _closing(found: re.Match[str]) -> str:
    if found["turn"] == "end":
        return rf"\end{{{found['name']}}}"
    return r"\right" if found["side"] == r"\right" else "}" if found["brace"] == "}" else ""
