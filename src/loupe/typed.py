"""Typed values out of JSON, msgpack and plain objects, safe in threads.

On first use of a type msgspec (0.22.0) collects what it knows of it, and a second thread that meets the type meanwhile
ends the process with a segmentation fault. So this module alone builds types, one at a time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    Hook: TypeAlias = Callable[[int, memoryview], Any]

Value = TypeVar("Value")

#: Held while msgspec may build a type. A `__post_init__` may read a value of its own meanwhile.
_BUILDING = threading.RLock()


def json_decoder(kind: type[Value]) -> msgspec.json.Decoder[Value]:
    """The one decoder of JSON into this type."""
    return _json_decoder(cast(Hashable, kind))


def msgpack_decoder(kind: type[Value], ext_hook: Hook | None = None) -> msgspec.msgpack.Decoder[Value]:
    """The one decoder of msgpack into this type; `ext_hook` reads what the format has no type for."""
    return _msgpack_decoder(cast(Hashable, kind), ext_hook)


def convert(value: Any, kind: type[Value], *, strict: bool = True) -> Value:
    """A plain value as this type; numbers may be strings unless `strict`. Raises msgspec.ValidationError."""
    with _BUILDING:
        return msgspec.convert(value, kind, strict=strict)


@functools.cache
def _json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _BUILDING:
        return msgspec.json.Decoder(kind)


@functools.cache
def _msgpack_decoder(kind: Any, ext_hook: Hook | None) -> msgspec.msgpack.Decoder[Any]:
    with _BUILDING:
        return msgspec.msgpack.Decoder(kind, ext_hook=ext_hook)
