"""Typed values out of JSON, msgpack and plain objects, safe in threads, whatever text the JSON carries.

On first use of a type msgspec (0.22.0) collects what it knows of it, and a second thread that meets the type meanwhile
ends the process with a segmentation fault. So this module alone builds types, one at a time.

JSON can escape half a surrogate pair, which is no character: msgspec refuses to read it and UTF-8 cannot hold it. Here
it is read, and stored, as U+FFFD: one character that says that there was none.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
import itertools
import json
import re
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

Json: TypeAlias = bytes | str | memoryview
#: What msgspec calls types → what they are called in a message.
_PLAIN_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}

if TYPE_CHECKING:
    Hook: TypeAlias = Callable[[int, memoryview], Any]

Order: TypeAlias = Literal[None, "deterministic", "sorted"]
Value = TypeVar("Value")
Read = TypeVar("Read")
#: An escape in JSON: both halves of a pair, one half alone, or any other.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

#: A number near the largest or smallest that there are. msgspec reads it some 200 times as slowly as another, so where
#: this many bytes contain this many, they are a trap and no data.
_EXTREME = re.compile(rb"\d[eE][+-]?0*[1-9]\d\d[,\]}\s]")
_MANY_BYTES, _MANY_EXTREMES = 2**16, 5000

#: Byte order marks, as Windows writes them before JSON.
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Held while msgspec may build a type. A `__post_init__` may read a value of its own meanwhile.
_BUILDING = threading.RLock()


class JsonDecoder(Generic[Value]):
    """Reads JSON into one type."""

    def __init__(self, kind: Any) -> None:
        with _BUILDING:
            self._strict: msgspec.json.Decoder[Value] = msgspec.json.Decoder(kind)

    def decode(self, data: Json) -> Value:
        """The value. Raises msgspec.DecodeError for what is no JSON, ValidationError for another type."""
        return self._read(self._strict.decode, data)

    def decode_lines(self, data: Json) -> list[Value]:
        """The values of JSON lines; raises as `decode`."""
        return self._read(self._strict.decode_lines, data)

    def _read(self, read: Callable[[Json], Read], data: Json) -> Read:
        if len(data) > _MANY_BYTES:
            _refuse_extremes(data)
        try:
            return read(data)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            plain = _as_plain_utf8(data)
            if plain is None:
                raise
        return read(plain)


def _refuse_extremes(data: Json) -> None:
    """Raise msgspec.DecodeError for text that takes minutes to read because of its numbers."""
    found = _EXTREME.finditer(data.encode("utf-8", "replace") if isinstance(data, str) else data)
    if next(itertools.islice(found, _MANY_EXTREMES, None), None):
        raise msgspec.DecodeError(f"more than {_MANY_EXTREMES:,} numbers with an exponent of three digits")


def json_decoder(kind: type[Value]) -> JsonDecoder[Value]:
    """The one decoder of JSON into this type."""
    return _json_decoder(cast(Hashable, kind))


def decode_json(data: Json) -> Any:
    """Any JSON as plain objects. Raises msgspec.DecodeError."""
    return _json_decoder(Any).decode(data)


def encode_json(value: Any, *, enc_hook: Callable[[Any], Any] | None = None, order: Order = None) -> bytes:
    """One JSON value. Text that UTF-8 cannot hold is written as `storable` has it; `enc_hook` and `order` as msgspec's.

    >>> encode_json({"a": "x\\ud800"}) == '{"a":"x\\ufffd"}'.encode()
    True
    """
    try:
        return msgspec.json.encode(value, enc_hook=enc_hook, order=order)
    except UnicodeEncodeError:
        plain = storable(msgspec.to_builtins(value, enc_hook=enc_hook))
        return msgspec.json.encode(plain, order=order)


def storable(value: Any) -> Any:
    """Objects as UTF-8 can hold them: half a surrogate pair is U+FFFD, two halves side by side their character.

    >>> storable({"a": ["x\\ud800"]}) == {"a": ["x\\ufffd"]}
    True
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{key: storable(item) for key, item in msgspec.structs.asdict(value).items()}
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        texts = {field.name: storable(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **texts)
    return type(value)(map(storable, value)) if type(value) in (list, tuple) else value


def _as_plain_utf8(data: Json) -> bytes | None:
    """Return JSON as UTF-8 without a byte order mark, with U+FFFD for escaped halves of surrogate pairs.

    None if it is so already.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    plain = raw
    if raw.startswith(_MARKS):
        try:
            plain = raw.decode(json.detect_encoding(raw)).encode()
        except UnicodeDecodeError:
            return None
    plain = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape["half"] else escape[0], plain)
    return plain if plain != raw else None


def msgpack_decoder(kind: type[Value], ext_hook: Hook | None = None) -> msgspec.msgpack.Decoder[Value]:
    """The one decoder of msgpack into this type; `ext_hook` reads what the format has no type for."""
    return _msgpack_decoder(cast(Hashable, kind), ext_hook)


def convert(value: Any, kind: type[Value], *, strict: bool = True) -> Value:
    """A plain value as this type; numbers may be strings unless `strict`. Raises msgspec.ValidationError."""
    with _BUILDING:
        return msgspec.convert(value, kind, strict=strict)


def wrong_type(message: str) -> tuple[str, str] | None:
    """Return what msgspec wanted and what it got, in words, if its message says no more than that.

    >>> wrong_type("Expected `int | null`, got `str`")
    ('a whole number', 'text')
    """
    types = re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", message)
    if types is None:
        return None
    wanted = " or ".join(_PLAIN_TYPES.get(name, name) for name in types[1].split(" | ") if name != "null")
    return wanted, "a fraction" if types[2] == "float" else _PLAIN_TYPES.get(types[2], types[2])


@functools.cache
def _json_decoder(kind: Any) -> JsonDecoder[Any]:
    return JsonDecoder(kind)


@functools.cache
def _msgpack_decoder(kind: Any, ext_hook: Hook | None) -> msgspec.msgpack.Decoder[Any]:
    with _BUILDING:
        return msgspec.msgpack.Decoder(kind, ext_hook=ext_hook)


#: Up to here, every whole number is also one of JavaScript and of a float.
_MOST_TOKENS = 2**53


def possible_tokens(count: int | None) -> int | None:
    """Return the count of tokens, None for one that is unknown or impossible.

    >>> possible_tokens(12), possible_tokens(-1), possible_tokens(2**63)
    (12, None, None)
    """
    # What is no number at all is refused where the record is checked.
    return None if isinstance(count, int) and not 0 <= count <= _MOST_TOKENS else count
