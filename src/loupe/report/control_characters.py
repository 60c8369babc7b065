"""What an engine or a server wrote, made safe to show in a terminal."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """The text without control characters but line ends and tabs: nobody else may steer the terminal.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)
