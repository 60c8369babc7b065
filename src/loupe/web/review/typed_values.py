"""How a typed value is read: beside the field, so that nobody learns from a score that a date was none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from loupe.metrics.dates import DateOrder, normalize_date
from loupe.metrics.field_values import is_absent, read_amount
from loupe.web.review.entries import Hint


def hint_by(order: DateOrder) -> Callable[[str, str], Hint]:
    """The hints of a folder that reads dates in this order."""
    return partial(hint, order=order)


def hint(kind: str, value: str, *, order: DateOrder) -> Hint:
    """The day or number that a text is, where it is spelled in another way; or that it is none.

    >>> hint("date", "11. Mai 2024", order="dmy").text, hint("amount", "twelve", order="dmy").text
    ('read as 2024-05-11', 'cannot be read as an amount: kept as a draft, cannot be accepted')
    """
    if is_absent(value):
        return Hint("counts as empty") if value.strip() else Hint()
    if kind not in ("date", "amount"):
        return Hint()
    read = normalize_date(value, order) if kind == "date" else _amount(value)
    if read is None:
        name = "a date" if kind == "date" else "an amount"
        return Hint(f"cannot be read as {name}: kept as a draft, cannot be accepted", unreadable=True)
    return Hint() if read == value.strip() else Hint(f"read as {read}")


def _amount(value: str) -> str | None:
    found = read_amount(value)
    return None if found is None else f"{found.value:f}"
