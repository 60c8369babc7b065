"""What is reviewed, whatever it is: an entry per line of a file, with a page beside it and fields that can be edited.

A kind of ground truth is a `Truth`: how a line becomes an entry, and how it looks after a change. All that the
application knows of it stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from loupe.errors import LoupeError

Status: TypeAlias = Literal["unreviewed", "verified", "rejected"]
Control: TypeAlias = Literal["text", "math", "number", "switch", "choice"]
#: What is claimed, how it is compared, and what the claim is about.
Part: TypeAlias = Literal["fact", "detail", "more"]


class FieldError(LoupeError):
    """A change that would leave an entry broken; `field` is the one to look at, "" if it is none in particular."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field as a form shows it; an `optional` one may be empty, which is null."""

    name: str
    label: str
    control: Control
    value: Any
    choices: tuple[str, ...] = ()
    note: str = ""
    optional: bool = False
    part: Part = "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line under review; `problem` says why it cannot be verified as it is, `remark` what else is odd about it.

    `kept` are members that no form knows: shown, never touched. `phrases` are texts to be marked on the page, by field.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a person did to an entry: a status, or None to leave it, and fields by name."""

    status: Status | None = None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A kind of ground truth in lines: `changed` raises FieldError for what would break the entry."""

    title: str
    noun: str
    kinds: tuple[str, ...]
    read: Callable[[str], Entry]
    changed: Callable[[str, Change], str]
