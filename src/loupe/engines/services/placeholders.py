"""Placeholders in the texts of an `http` profile: each is replaced once, and what was put in is not looked at again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from loupe.errors import EngineError

#: Placeholders, and whether a name follows them after a colon.
KNOWN = {
    "prompt": False,
    "model": False,
    "page": True,
    "secret": True,
    "upload": True,
    "submit": True,
    "submit_header": True,
    "poll": True,
    "last": True,
}
#: The same as shown in messages.
ANY = "{page:base64}, {page:data_url}, {page:name}, {page:type}, {prompt}, {model}, {secret:NAME}, {submit:PATH}, …"
#: `{page}` alone is the file of a multipart body.
FILE = "{page}"
_PLACEHOLDER = re.compile(r"\{([a-z_]+(?::[^{}]*)?)\}")

#: What a placeholder stands for.
Find = Callable[[str], Any]


def names_in(value: Any) -> Iterator[str]:
    """The placeholders in the texts of a value, to any depth, without the file of a multipart body."""
    if isinstance(value, str):
        yield from (found for found in _PLACEHOLDER.findall(value) if value != FILE)
    elif isinstance(value, dict):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)


def filled(value: Any, find: Find) -> Any:
    """A value with its placeholders replaced; a text that is nothing but one placeholder becomes what that stands for.

    >>> filled({"n": "{submit:n}", "t": ["is {submit:n}"]}, lambda name: 3)
    {'n': 3, 't': ['is 3']}
    """
    if isinstance(value, str):
        alone = _PLACEHOLDER.fullmatch(value)
        return find(alone[1]) if alone else _PLACEHOLDER.sub(lambda found: _as_text(find, found[1]), value)
    if isinstance(value, dict):
        return {key: filled(each, find) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, find) for each in value]
    return value


def filled_text(text: str, find: Find, quote: Callable[[str], str] = str) -> str:
    """A text with its placeholders replaced, each in `quote` unless the text is nothing but that one."""
    if alone := _PLACEHOLDER.fullmatch(text):
        return _as_text(find, alone[1])
    return _PLACEHOLDER.sub(lambda found: quote(_as_text(find, found[1])), text)


def _as_text(find: Find, name: str) -> str:
    value = find(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EngineError(
            f"the service's answer has no text at {name.partition(':')[2]!r}, which the next request needs"
        )
    return str(value)
