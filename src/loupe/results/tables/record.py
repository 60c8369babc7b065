"""A table as people see it, before anything decides whether it becomes text, LaTeX or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from loupe.types import Estimate

Mark: TypeAlias = Literal["best", "significant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The head of a column: `unit` and `better` stand behind its name, and neighbours may share a `group` above."""

    name: str
    group: str = ""
    unit: str = ""
    better: Literal["", "↑", "↓"] = ""

    def __str__(self) -> str:
        return " ".join(filter(None, [self.name, f"({self.unit})" if self.unit else "", self.better]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as text, with the `margin` of its interval; the `note` says why there is none.

    Where a column has bars, `bar` is the length of this one in percent of the longest; `step` is its colour step (None:
    no colour).
    """

    text: str
    margin: str = ""
    note: str = ""
    estimate: Estimate | None = None
    marks: Sequence[Mark] = ()
    bar: float = 0.0
    step: int | None = None

    @property
    def n(self) -> int:
        """The number of units that the value comes from."""
        return self.estimate.n if self.estimate else 0

    def __str__(self) -> str:
        margin = f"[{self.margin}]" if "…" in self.margin else self.margin
        return " ".join(filter(None, [self.text, margin, f"({self.note})" if self.note else ""]))


@dataclass(frozen=True, kw_only=True)
class Table:
    """`rows` of cells below `header`; `alarm` asks for red. A terminal marks the row of the `winner`.

    The first `keys` columns say what a row is about: they stand in every part of a table that is too wide.
    `notes` say below the table what its marks mean. Of a `sparse` one each part has only rows that say something there.
    """

    title: str
    rows: Sequence[Sequence[Cell | str]]
    header: Sequence[Column | str] = ()
    alarm: bool = False
    winner: int | None = None
    keys: int = 1
    notes: Sequence[str] = ()
    sparse: bool = False

    def column(self, place: int) -> list[str]:
        """The cells of one column as texts."""
        return [str(row[place]) for row in self.rows if place < len(row)]


def is_of_numbers(cells: Iterable[str]) -> bool:
    """Whether these cells hold numbers, or nothing."""
    return all(re.match(r"[\d±+\-–−<p]|$", cell) for cell in cells)


def one_line(text: str, longest: int = 160) -> str:
    """The text on one line, at most `longest` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
