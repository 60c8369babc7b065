"""Entries of a review: one per line of a file, with a page beside it and fields that can be edited, also typed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from loupe.errors import LoupeError
from loupe.metrics.dates import DateOrder, normalize_date
from loupe.metrics.field_values import is_absent, read_amount

Status: TypeAlias = Literal["unreviewed", "verified", "rejected"]
Control: TypeAlias = Literal[
    "text", "math", "number", "switch", "choice", "line", "list", "label", "prose", "markdown", "table"
]
#: What is claimed, how it is compared, and what the claim is about.
Part: TypeAlias = Literal["fact", "detail", "more"]


class FieldError(LoupeError):
    """A change that would leave an entry broken; `field` is the one to look at, "" if it is none in particular.

    `ask`: it is made all the same when the person confirms it.
    """

    def __init__(self, message: str, *, field: str = "", ask: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.ask = ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field as a form shows it; an `optional` one may be empty, which is null.

    `kind` is the type of a typed value, by which `Truth.hint` says how it is read.
    """

    name: str
    label: str
    control: Control
    value: Any
    choices: tuple[str, ...] = ()
    note: str = ""
    optional: bool = False
    part: Part = "fact"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The texts of an engine by field; None: it failed."""

    engine: str
    values: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Hint:
    """A typed value as it is read; `unreadable`: it is not."""

    text: str = ""
    unreadable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line under review; `problem` says why it cannot be verified as it is, `remark` what else is odd about it.

    `kept` are members that no form knows: shown, never touched. `phrases` are texts to be marked on the page, by field.
    `differs` are fields in which the drafts do not agree. Entries of lower `turn` come first; those of one `section`
    stand together in the list, without one those of a page do. `source` is the input of an entry without a page.
    """

    id: str
    kind: str
    document: str
    page: int
    status: Status
    says: str = ""
    summary: str = ""
    layout: str = "plain"
    fields: tuple[Field, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    remark: str = ""
    broken: bool = False
    more_pages: tuple[tuple[str, int], ...] = ()
    source: str = ""
    drafts: tuple[Draft, ...] = ()
    differs: tuple[str, ...] = ()
    section: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A person's change to an entry: a status, or None to leave it, and fields by name.

    `going`: it was typed, and in which go: what has one name was typed without leaving the field between.
    `confirmed`: asked whether it is meant, the person said so.
    """

    status: Status | None = None
    fields: Mapping[str, Any]
    going: str = ""
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The names of decisions for a kind of truth; without `refuse` there is none but to verify."""

    accept: str = "Verify"
    refuse: str = "Reject"
    refused: str = "rejected"
    key: str = "r"


def no_hint(kind: str, value: str) -> Hint:
    """Nothing to say."""
    return Hint()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A kind of ground truth in lines: `changed` raises FieldError for what would break the entry.

    `by_id`: in lists entries are told apart by their ids. `in_lines`: they are lines of a file. `saves_typing`: what is
    typed into an entry that nobody has decided goes into the file while it is typed.
    """

    title: str
    noun: str
    kinds: tuple[str, ...]
    read: Callable[[str], Entry]
    changed: Callable[[str, Change], str]
    words: Words = field(default_factory=Words)
    hint: Callable[[str, str], Hint] = no_hint
    by_id: bool = False
    saves_typing: bool = False
    in_lines: bool = True

    def said(self, status: Status) -> str:
        """The name of a status."""
        return self.words.refused if status == "rejected" else status


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
