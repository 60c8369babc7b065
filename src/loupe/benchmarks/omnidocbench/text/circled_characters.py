r"""Circled letters and digits as plain ones, which OmniDocBench 1.6 does before anything else.

Protocol: docs/protocols/omnidocbench_v16.md#text.
"""

from __future__ import annotations

import re
from typing import Final

_CIRCLED = re.compile(r"\\textcircled\s*\{([^{}]+)\}")
_PLAIN: Final = (
    {0x2460 + number: str(number + 1) for number in range(20)}
    | {0x24D0 + letter: chr(ord("a") + letter) for letter in range(26)}
    | {0x24B6 + letter: chr(ord("A") + letter) for letter in range(26)}
)


def without_circles(text: str) -> str:
    r"""The text with `\textcircled{3}` and ③ as 3, ⓐ as a.

    >>> without_circles(r"③ \textcircled{ b }")
    '3 b'
    """
    if "\\textcircled" in text:
        text = _CIRCLED.sub(lambda circled: circled[1].strip(), text)
    return text if text.isascii() else text.translate(_PLAIN)
