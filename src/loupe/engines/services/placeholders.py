"""Placeholders in the texts of an `http` profile: each is replaced once, and what was put in is not looked at again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from loupe.errors import EngineError

#: `{page}` alone is the file of a multipart body.
FILE = "{page}"
#: Placeholders as messages show them.
SHOWN = "{page:base64}, {page:data_url}, {page:name}, {page:type}, {prompt}, {model}, {secret:NAME}, {submit:PATH}, …"
#: Placeholders of what was answered before, which hold a path, and what else they may be.
ANSWERED = ("upload", "submit", "poll")
_NAMES = {"page": ("base64", "data_url", "name", "type"), "secret": None, "submit_header": None}
_PLACEHOLDER = re.compile(r"\{((?:page|secret|submit_header|upload|submit|poll):[^{}]*|prompt|model)\}")
_ANY = re.compile(r"\{([a-z_]+(?::[^{}]*)?)\}")

#: What a placeholder stands for.
Find = Callable[[str], Any]


def names_in(value: Any) -> Iterator[str]:
    """The placeholders in the texts of a value, to any depth, without the file of a multipart body."""
    if isinstance(value, str):
        yield from (found for found in _ANY.findall(value) if value != FILE)
    elif isinstance(value, dict):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)


def secrets_in(value: Any) -> set[str]:
    """The names of secrets that the texts of a value ask for."""
    return {name.removeprefix("secret:") for name in names_in(value) if name.startswith("secret:")}


def check_placeholders(value: Any) -> None:
    """Raises ValueError for a placeholder that there is not."""
    for name in names_in(value):
        kind, _, rest = name.partition(":")
        if not _PLACEHOLDER.fullmatch(f"{{{name}}}") or (_NAMES.get(kind) and rest not in (_NAMES[kind] or ())):
            raise ValueError(f"no placeholder {{{name}}}; there are {SHOWN}")


def is_placeholder(text: str) -> bool:
    """Whether a text is nothing but one placeholder."""
    return _PLACEHOLDER.fullmatch(text) is not None


def filled(value: Any, find: Find) -> Any:
    """A value with its placeholders replaced; a text that is nothing but one placeholder becomes what that stands for.

    >>> filled({"n": "{submit:n}", "t": ["is {submit:n}"]}, lambda name: 3)
    {'n': 3, 't': ['is 3']}
    """
    if isinstance(value, str):
        alone = _PLACEHOLDER.fullmatch(value)
        return _known(find, alone[1]) if alone else filled_text(value, find)
    if isinstance(value, dict):
        return {key: filled(each, find) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, find) for each in value]
    return value


def filled_text(text: str, find: Find, quote: Callable[[str], str] = str) -> str:
    """A text with its placeholders replaced, each in `quote` unless the text is nothing but that one.

    Raises EngineError where the service has not said what one stands for.
    """
    quote = str if is_placeholder(text) else quote
    return _PLACEHOLDER.sub(lambda found: quote(_as_text(find, found[1])), text)


def _known(find: Find, name: str) -> Any:
    value = find(name)
    if value is None:
        raise EngineError(f"the service's answer has nothing at {name!r}, which the next request needs")
    return value


def _as_text(find: Find, name: str) -> str:
    value = _known(find, name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EngineError(f"the service's answer has no text at {name!r}, which the next request needs")
    return str(value)
