"""An answer as it is, with one fault of form mended, and with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from loupe.types import Edit, FormatFault

#: Mending one fault may bring another to light; more rounds than this are for hostile answers only.
ROUNDS = 4


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in one form: as it is ("official"), with one fault mended (its name), or with all ("mended")."""

    name: str
    text: str


def versions(text: str, faults: Sequence[FormatFault]) -> tuple[dict[str, list[int]], list[Version]]:
    """The faults of an answer, and the answer as it is and mended."""
    places, found = {}, [Version(name="official", text=text)]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for fault in faults:
        edits = fault.edits(text)
        if edits:
            places[fault.name] = line_numbers(text, edits)
            found.append(Version(name=fault.name, text=mend(text, edits)))
    if places:
        found.append(Version(name="mended", text=mend_all(text, faults)))
    return places, found


def line_numbers(text: str, edits: Iterable[Edit]) -> list[int]:
    """The lines on which edits begin, counted from 1."""
    numbers, line, place = [], 1, 0
    for edit in edits:
        line += text.count("\n", place, edit.start)
        place = edit.start
        numbers.append(line)
    return numbers


def mend(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits made."""
    parts: list[str] = []
    cursor = 0
    for edit in edits:
        parts += (text[cursor : edit.start], edit.text)
        cursor = edit.end
    return "".join([*parts, text[cursor:]])


def mend_all(text: str, faults: Sequence[FormatFault]) -> str:
    """The text with all faults mended, one after the other, again and again until nothing changes."""
    for _ in range(ROUNDS):
        before = text
        for fault in faults:
            text = mend(text, fault.edits(text))
        if text == before:
            break
    return text
