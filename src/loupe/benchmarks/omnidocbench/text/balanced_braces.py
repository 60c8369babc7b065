"""Braces that belong together, found in time linear in the text."""

from __future__ import annotations

import re
from typing import Final

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
