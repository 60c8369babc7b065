"""Braces that belong together, found in time linear in the text."""

from __future__ import annotations

import re

_BRACE = re.compile("[{}]")


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
