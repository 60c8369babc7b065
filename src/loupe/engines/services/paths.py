"""Places in a service's answer, in JMESPath (https://jmespath.org)."""

from __future__ import annotations

import functools
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult


@functools.cache
def compiled(path: str) -> ParsedResult:
    """A path that can be looked up. Raises ValueError for one that is none."""
    try:
        return jmespath.compile(path)
    except JMESPathError as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path!r} is no JMESPath: {said}") from None


def look(path: str, data: Any) -> Any:
    """What stands at a path; None for nothing, and where the data are not what the path expects."""
    try:
        return compiled(path).search(data)
    except (JMESPathError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def texts(value: Any) -> list[str]:
    """The texts of a value in order: of a list those in it, to any depth, without empty ones.

    >>> texts(["a", None, ["", ["b", 3]]]), texts("c"), texts({"text": "d"})
    (['a', 'b', '3'], ['c'], [])
    """
    found: list[str] = []
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, list):
            rest += reversed(each)
        elif isinstance(each, str | int | float) and not isinstance(each, bool) and each != "":
            found.append(str(each))
    return found


def outline(data: Any) -> str:
    """What an answer holds instead of a path, in a few words: the keys of an object, the length of a list.

    >>> outline({"status": "ok", "pages": []}), outline([1, 2])
    ('an object with status, pages', 'a list of 2')
    """
    if isinstance(data, dict):
        keys = ", ".join(str(key)[:40] for key in list(data)[:12])
        return f"an object with {keys}" if keys else "an empty object"
    if isinstance(data, list):
        return f"a list of {len(data)}"
    return "no body" if data is None else f"{type(data).__name__}"
