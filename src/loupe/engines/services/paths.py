"""Places in a service's answer, in JMESPath (https://jmespath.org)."""

from __future__ import annotations

import functools
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from loupe.errors import EngineError

#: Where a list of things is made into a list of what each of them says.
_PROJECTIONS = frozenset({"projection", "filter_projection", "value_projection"})


@functools.cache
def compiled(path: str) -> ParsedResult:
    """A path that can be looked up. Raises ValueError for one that is none."""
    try:
        return jmespath.compile(path)
    except (JMESPathError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path!r} is no JMESPath: {said}") from None


def look(path: str, data: Any) -> Any:
    """Return the value at a path; None for nothing, and if the data are not what the path expects."""
    return _found(compiled(path), data) if path else None


def _found(path: ParsedResult, data: Any) -> Any:
    try:
        return path.search(data)
    except (JMESPathError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        return None


def text_at(path: str, data: Any) -> list[Any]:
    """The texts at a path: of a text it alone, of a list what is in it. An empty list is an empty page.

    Raises EngineError where nothing stands at the path, which is never the same as an empty page.

    >>> text_at("pages[].text", {"pages": [{"text": "a"}, {"text": ""}]}), text_at("pages[].text", {"pages": []})
    (['a', ''], [])
    """
    value = look(path, data)
    if value is None or (value == [] and _drops_all(compiled(path).parsed, data)):
        raise EngineError(f"no text at {path!r} of the service's answer, which is {outline(data)}")
    return value if isinstance(value, list) else [value]


def _drops_all(node: Any, data: Any) -> bool:
    """True if a path finds nothing because what it looks for is in none of the things that are there.

    `pages[].markdown` of pages without `markdown` is an empty list, as it is where there are no pages.
    """
    kind, children = node["type"], node["children"]
    if kind not in _PROJECTIONS:
        return bool(children) and _drops_all(children[0], data)
    things = children[0]
    if kind == "filter_projection":
        things = {**node, "children": [children[0], {"type": "identity", "children": []}, children[2]]}
    if _found(ParsedResult("", node), data) == [] and _found(ParsedResult("", things), data):
        return True
    return _drops_all(children[0], data)


def joined(value: Any, between: str, path: str) -> str:
    """The text of a text, or of those in a list to any depth, without empty ones. Raises EngineError for what is none.

    >>> joined(["a", None, ["", ["b"]]], "-", "path")
    'a-b'
    """
    found: list[str] = []
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, list):
            rest += reversed(each)
        elif isinstance(each, str):
            found.append(each)
        elif each is not None:
            raise EngineError(f"no text at {path!r} of the service's answer, but {outline(each)}")
    return between.join(filter(None, found))


def said_at(path: str, data: Any) -> str:
    """Return the text that a service gives at a path, in one line, whatever it is made of."""
    value = look(path, data)
    texts = [
        str(each)[:1000] for each in (value if isinstance(value, list) else [value])[:10] if each not in (None, "")
    ]
    return " ".join("; ".join(texts).split())[:1000]


def outline(data: Any) -> str:
    """Describe a value in a few words: the keys of an object, the length of a list.

    >>> outline({"status": "ok", "pages": []}), outline([1, 2]), outline(True)
    ('an object with status, pages', 'a list of 2', 'true or false')
    """
    if isinstance(data, dict):
        keys = " ".join(", ".join(str(key)[:40] for key in list(data)[:12]).split())
        return f"an object with {keys}" if keys else "an empty object"
    if isinstance(data, list):
        return f"a list of {len(data):,}"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(data), "no value")
