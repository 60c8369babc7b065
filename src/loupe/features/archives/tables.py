"""Tables of confusions below a result: characters in the units of the profile, and whole stretches."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from loupe.results.tables.record import Table
from loupe.types import Result

_ROWS = 15


def confusion_tables(result: Result) -> Iterator[Table]:
    """Yield the most frequent confusions of a result that has them."""
    figures = result.figures or {}
    for name, title in (("confusions", "Read as"), ("confused_runs", "Read as, whole stretches")):
        rows, total = figures.get(name), figures.get(f"{name}_in_all")
        if isinstance(rows, list) and rows and isinstance(total, int):
            yield Table(
                title=title,
                header=("ground truth", "read as", "times", "of all"),
                rows=[_row(row, total) for row in rows[:_ROWS]],
            )


def _row(row: Any, total: int) -> tuple[str, str, str, str]:
    wanted, found, count = row
    return shown_units(str(wanted)), shown_units(str(found)), f"{count:,}", f"{100 * count / total:.1f} %"


def shown_units(text: str) -> str:
    """A confused text for the eye: a gap, blanks and line breaks as signs, marks on a circle, unseen ones by name.

    >>> shown_units(""), shown_units("a b"), shown_units("\\u0308"), shown_units("\\u200f")
    ('∅', 'a␣b', '◌̈', 'U+200F RIGHT-TO-LEFT MARK')
    """
    if not text:
        return "∅"
    return "".join(map(_shown, text))


def _shown(sign: str) -> str:
    if sign in " \n":
        return "␣" if sign == " " else "⏎"
    category = unicodedata.category(sign)
    if category[0] == "M":
        return f"◌{sign}"
    if category[0] == "C" and category != "Co":
        return f"U+{ord(sign):04X} {unicodedata.name(sign, '')}".strip()
    return sign
