"""Settings in TOML: read, also where they come from a stranger, and written."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

#: A dotted key of more parts than any setting has: Python needs the square of their number in memory to read it.
_DEEP_KEY = re.compile(r"""(?:(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}""")


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises ValueError (tomllib.TOMLDecodeError among them) or RecursionError."""
    text = text.removeprefix("\ufeff")
    if _DEEP_KEY.search(text):
        raise ValueError("a key of too many parts")
    return tomllib.loads(text)


def toml_key(key: str) -> str:
    """A key as it is written, in quotes where it needs them."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def as_toml(value: Any) -> str:
    """A value in one line of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {as_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # What JSON calls a string, a number or a truth value is the same in TOML, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
