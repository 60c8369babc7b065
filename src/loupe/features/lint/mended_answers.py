"""An answer as it is, with one fault of form mended, and with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec
from rapidfuzz.distance import Levenshtein

from loupe.types import Edit, FormatFault

#: Mending one fault may bring another to light; more rounds than this are for hostile answers only.
ROUNDS = 4
#: More lines times lines than this are not aligned: what differs is then one edit.
_MOST_LINES = 4_000_000


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


def edits_between(before: str, after: str) -> list[Edit]:
    """Return the edits that make one text of another, line by line: neighbouring lines that change are one edit."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    places = [0, *accumulate(map(len, old))]
    if len(old) * len(new) > _MOST_LINES:
        return [Edit(0, len(before), after)] if before != after else []
    found: list[Edit] = []
    for change in Levenshtein.opcodes(old, new):
        if change.tag == "equal":
            continue
        start, end = places[change.src_start], places[change.src_end]
        text = "".join(new[change.dest_start : change.dest_end])
        if found and found[-1].end == start:
            found[-1] = found[-1]._replace(end=end, text=found[-1].text + text)
        else:
            found.append(Edit(start, end, text))
    return found
