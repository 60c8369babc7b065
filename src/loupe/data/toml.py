"""Settings in TOML that may come from a stranger."""

from __future__ import annotations

import re
import tomllib
from typing import Any

#: A dotted key of more parts than any setting has: Python needs the square of their number in memory to read it.
_DEEP_KEY = re.compile(r"""(?:(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}""")


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises ValueError (tomllib.TOMLDecodeError among them) or RecursionError."""
    text = text.removeprefix("\ufeff")
    if _DEEP_KEY.search(text):
        raise ValueError("a key of too many parts")
    return tomllib.loads(text)
