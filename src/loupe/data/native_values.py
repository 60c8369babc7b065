"""Send values of data files between processes: each arrives as the type that it had, and none is unpickled.

What msgpack knows goes as it is; dates, times, decimals, UUIDs and tuples (of maps) go as text with the number of their
type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})


def tagged(value: Any) -> Any:
    """The value as msgpack can write it. Raises TypeError for a type that no data file has."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [tagged(item) for item in value]
    if kind is dict:
        return {key: tagged(item) for key, item in value.items()}
    # What pandas, where it is installed, makes of nanoseconds has the names of its own classes.
    if kind.__name__ not in _KINDS:
        raise TypeError(f"a value of the type {kind.__name__}")
    number, write, _ = _KINDS[kind.__name__]
    return msgspec.msgpack.Ext(number, msgspec.msgpack.encode(write(value)))


def untagged(number: int, data: memoryview) -> Any:
    """The value behind a tag: the `ext_hook` of msgspec. Raises ValidationError where it is no such value."""
    try:
        return _READ[number](msgspec.msgpack.decode(data, ext_hook=untagged))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise msgspec.ValidationError(f"tag {number}: {type(error).__name__}") from None


def _write_moment(moment: Any) -> list[str]:
    if moment.tzinfo is None:
        return [moment.isoformat()]
    from pyarrow.lib import tzinfo_to_string

    return [moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(), tzinfo_to_string(moment.tzinfo)]


def _read_moment(parts: list[str]) -> Any:
    return _in_zone(dt.datetime.fromisoformat(parts[0]), parts[1:])


def _read_nanoseconds(parts: list[str]) -> Any:
    from pandas import Timestamp

    return _in_zone(Timestamp(parts[0]), parts[1:])


def _in_zone(moment: Any, zone: list[str]) -> Any:
    if not zone:
        return moment
    # As Arrow itself finds it, so that it is the same class of zone.
    from pyarrow.lib import string_to_tzinfo

    return moment.replace(tzinfo=dt.UTC).astimezone(string_to_tzinfo(zone[0]))


def _read_long_duration(nanoseconds: int) -> Any:
    from pandas import Timedelta

    return Timedelta(nanoseconds, unit="ns")


#: By the name of a class: its number, its plain form, and the value of that.
_KINDS: Final[Mapping[str, tuple[int, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "tuple": (1, lambda value: [tagged(item) for item in value], tuple),
    "datetime": (2, _write_moment, _read_moment),
    "date": (3, dt.date.isoformat, dt.date.fromisoformat),
    "time": (4, dt.time.isoformat, dt.time.fromisoformat),
    "timedelta": (5, lambda value: [value.days, value.seconds, value.microseconds], lambda parts: dt.timedelta(*parts)),
    "Decimal": (6, str, Decimal),
    "UUID": (7, str, UUID),
    "Timestamp": (8, _write_moment, _read_nanoseconds),
    "Timedelta": (9, lambda value: value.value, _read_long_duration),
}
_READ: Final = {number: read for number, _, read in _KINDS.values()}
