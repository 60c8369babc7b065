"""Tables of confusions below a result: characters in the units of the profile, and whole stretches."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import msgspec

from loupe.results.tables.record import Table
from loupe.typed import convert
from loupe.types import Result

_ROWS = 15


class _ReadAs(msgspec.Struct, frozen=True):
    """Confusions of a result: rows of ground truth, answer and count, the most frequent first."""

    in_all: int
    rows: list[tuple[str, str, int]]


def confusion_tables(result: Result) -> Iterator[Table]:
    """Yield the most frequent confusions of a result that has them; figures of another form are left out."""
    try:
        found = convert((result.figures or {}).get("read_as", {}), dict[str, _ReadAs])
    except msgspec.ValidationError:
        return
    for name, title in (("confusions", "Read as"), ("confused_runs", "Read as, whole stretches")):
        if (read_as := found.get(name)) and read_as.rows and read_as.in_all > 0:
            yield Table(
                title=title,
                header=("ground truth", "read as", "times", "of all"),
                rows=[
                    (shown_units(wanted), shown_units(given), f"{count:,}", f"{100 * count / read_as.in_all:.1f} %")
                    for wanted, given, count in read_as.rows[:_ROWS]
                ],
            )


def shown_units(text: str) -> str:
    """A confused text for the eye: a gap, blanks and line breaks as signs, marks on a circle, unseen ones by name.

    >>> shown_units(""), shown_units("a b"), shown_units("\\u0308"), shown_units("\\u200f")
    ('∅', 'a␣b', '◌̈', 'U+200F RIGHT-TO-LEFT MARK')
    """
    return "".join(map(_shown, text[:80])) if text else "∅"


def _shown(sign: str) -> str:
    if sign in " \n":
        return "␣" if sign == " " else "⏎"
    category = unicodedata.category(sign)
    if category[0] == "M":
        return f"◌{sign}"
    if category[0] == "C" and category != "Co":
        return f"U+{ord(sign):04X} {unicodedata.name(sign, '')}".strip()
    return sign
