"""Changing values in one line of JSON and nothing else: order, blanks, escapes and unknown members stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loupe.errors import DatasetError

_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object, and where it stands in the text."""

    key_start: int
    key_end: int
    start: int
    end: int
    value: Any


def read_object(line: str) -> dict[str, Any]:
    """The object that the line holds. Raises DatasetError with the reason where there is none."""
    try:
        value = json.loads(line.rstrip())
    except json.JSONDecodeError as error:
        raise DatasetError(f"not JSON ({error.msg} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise DatasetError("not an object")
    return value


def with_values(line: str, changes: Mapping[str, Any]) -> str:
    """The line with these members set; what is new comes last, in the line's own manner of blanks and escapes.

    >>> with_values('{"a": 1,  "b":[2], "c" : "ü"}', {"b": None, "d": "é"})
    '{"a": 1,  "b":null, "c" : "ü", "d": "é"}'
    """
    read_object(line)
    found, close = _members(line)
    escape = bool(_ESCAPED.search(line))
    colon, comma = _manners(line, found)
    text = line
    new = [_text(name, escape) + colon + _text(value, escape) for name, value in changes.items() if name not in found]
    if new:
        end = max((member.end for member in found.values()), default=close)
        text = text[:end] + (comma if found else "") + comma.join(new) + text[end:]
    for name in sorted(found.keys() & changes.keys(), key=lambda name: -found[name].start):
        member = found[name]
        text = text[: member.start] + _text(changes[name], escape) + text[member.end :]
    return text


def _members(line: str) -> tuple[dict[str, Member], int]:
    """The members by name, of equal names the last, which is the one that counts; and where the object ends."""
    found: dict[str, Member] = {}
    place = _skip(line, _skip(line, 0) + 1)
    while line[place] != "}":
        place = _skip(line, place + 1) if line[place] == "," else place
        key, key_end = _DECODER.raw_decode(line, place)
        start = _skip(line, _skip(line, key_end) + 1)
        value, end = _DECODER.raw_decode(line, start)
        found[key] = Member(place, key_end, start, end, value)
        place = _skip(line, end)
    return found, place


def _skip(line: str, place: int) -> int:
    match = _BLANKS.match(line, place)
    assert match is not None
    return match.end()


def _manners(line: str, found: Mapping[str, Member]) -> tuple[str, str]:
    """What stands between a name and its value, and between two members."""
    members = sorted(found.values(), key=lambda member: member.start)
    colon = line[members[0].key_end : members[0].start] if members else ": "
    comma = line[members[0].end : members[1].key_start] if len(members) > 1 else ", "
    return colon, comma


def _text(value: Any, escape: bool) -> str:
    """The value as JSON. Half a surrogate pair exists only escaped."""
    plain = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if escape or _SURROGATE.search(plain) else plain
