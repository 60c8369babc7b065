"""The date and the name in an answer, and whether they are those of the document. Source: docs/select.md."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from loupe.benchmarks.folders.selection.prompts import Field
from loupe.benchmarks.folders.selection.verdicts import without_thinking
from loupe.metrics.dates import DateOrder, dates_match
from loupe.metrics.names import NameRule, names_match

#: Keys under which models give the name, whatever was asked for.
_NAME_KEYS = ("secondaryfield", "secondary_field", "name")
#: Bounds for hostile answers: characters looked at, objects tried.
_LONGEST, _MOST_OBJECTS = 20_000, 8
_STRINGS_AND_BRACES = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
#: A text in double quotes, or in single ones, which end where the value does; either may lack its end.
_TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|\Z)'
    r"|'(?:[^'\\]|\\.|'(?!\s{0,9}(?:[,:}\]]|\Z)))*(?:'|\\?\Z)"
    r"|[A-Za-z]+|\s+|.",
    re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]"}
_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What an answer gives; both are empty, and `parsable` is not set, where no JSON object was found."""

    date: str = ""
    name: str = ""
    parsable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Whether an extraction is right, and by which rule the name is. A value that the truth lacks counts as right."""

    date: bool
    name: bool
    rule: NameRule | None = None


def parse_extraction(answer: str, field: Field) -> Extraction:
    """The two values in an answer: those of its first JSON object, mended where commas, quotes or a brace are wrong."""
    found = _first_object(without_thinking(answer)[:_LONGEST])
    if found is None:
        return Extraction()
    folded = {str(key).strip().casefold(): value for key, value in found.items()}
    keys = (field.key, *_NAME_KEYS, *field.synonyms) if field.key else ()
    names = (_text(folded.get(key)) for key in keys)
    return Extraction(date=_text(folded.get("date")), name=next(filter(None, names), ""), parsable=True)


def match_extraction(
    prediction: Extraction, date: str, name: str, *, field: Field, date_order: DateOrder = "dmy"
) -> Match:
    """Whether date and name are those of the ground truth."""
    rule = names_match(prediction.name, name, field.kind) if name and field.key else None
    return Match(
        date=not date or dates_match(prediction.date, date, date_order),
        name=not (name and field.key) or rule is not None,
        rule=rule,
    )


def _first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text that can be read or mended; a few are tried at most."""
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            break
        end = _end_of_object(text, start)
        found = _read(text[start : end or len(text)])
        if found is not None:
            return found
        start = text.find("{", start + 1)
    return None


def _end_of_object(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`; 0 where none does."""
    depth = 0
    for found in _STRINGS_AND_BRACES.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return 0


def _read(written: str) -> dict[str, Any] | None:
    for text, is_mended in ((written, False), (mended(written), True)):
        try:
            found = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        # A brace that something unreadable follows is not mended into an object of nothing.
        if isinstance(found, dict) and (found or not is_mended):
            return found
    return None


def mended(written: str) -> str:
    """JSON with what models get wrong put right: single quotes, Python's words, commas at an end, missing closings.

    One pass, in linear time; what is wrong otherwise stays so.

    >>> mended("{'a': None, 'b': [1, 2,")
    '{"a": null, "b": [1, 2]}'
    """
    parts: list[str] = []
    closings: list[str] = []
    for found in _TOKENS.finditer(written):
        token = found[0]
        if token[0] in "\"'":
            parts.append(_as_string(token))
            continue
        if token in _CLOSING:
            closings.append(_CLOSING[token])
        elif token in "}]":
            _drop_comma(parts)
            if closings:
                closings.pop()
        parts.append(_PYTHON_WORDS.get(token, token))
    _drop_comma(parts)
    return "".join([*parts, *reversed(closings)])


def _as_string(token: str) -> str:
    """A quoted text, in single or double quotes, perhaps without its end, as JSON has it."""
    quote = token[0]
    inner = token[1:-1] if len(token) > 1 and token.endswith(quote) else token[1:].removesuffix("\\")
    if quote == "'":
        inner = inner.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
    return f'"{inner}"'


def _drop_comma(parts: list[str]) -> None:
    """Take away a comma at the end, and the space behind it."""
    end = len(parts)
    while end and parts[end - 1].isspace():
        end -= 1
    if end and parts[end - 1] == ",":
        del parts[end - 1 :]


def _text(value: Any) -> str:
    """A value as text: of a list its first entry, null as nothing, what is no text as Python writes it."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if value is None:
        return ""
    try:
        return value.strip() if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        return ""
