"""The list of samples: filtered, sorted and cut into pages here, so that ten thousand are as quick as ten."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from loupe.quantities import points
from loupe.report.leaderboard import STEPS
from loupe.types import FAILED, Measure
from loupe.web.view.board import Board, Cell, Row

JsonObject: TypeAlias = dict[str, Any]

PAGE = 60
ORDERS = {
    "order": "As in the data",
    "worst": "Worst first",
    "best": "Best first",
    "cost": "Costs most first",
    "spread": "Largest difference first",
    "name": "By name",
}
OUTCOMES = {
    "ok": "answered",
    "empty": "empty answer",
    "truncated": "cut off",
    "repeated": "repetition loop",
    "refused": "refused",
    "unfinished": "cut off before the answer",
    "timeout": "timed out",
    "error": "error",
    "rejected": "rejected",
    "missing": "no answer",
    "scorer": "scoring failed",
    "blank": "correctly empty",
    "waiting": "not read yet",
    "unasked": "not asked in this run",
}
_NOUNS = frozenset({"empty answer", "repetition loop", "error"})
#: Filters that look at all runs of a sample together.
TOGETHER = {"failed_by_all": "all engines failed: no points", "differ": "engines differ"}
#: Smaller differences are rounding.
_TIE = 1e-9
NOT_ANSWERED = FAILED | {"scorer"}
_MOST_VALUES = 60


@dataclass(frozen=True, slots=True)
class Wanted:
    """A person's wishes. `runs` are places among the runs of the board; empty: all."""

    words: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()
    outcome: str = ""
    error: str = ""
    tag: tuple[str, str] = ("", "")
    order: str = "order"
    page: int = 1


def wanted_of(board: Board, query: Mapping[str, str]) -> Wanted:
    """The wish that an address stands for; what it does not know of is left out."""
    keys = [run.key for run in board.ordered()]
    chosen = [keys.index(query[name]) for name in ("a", "b") if query.get(name) in keys]
    tag, _, value = query.get("tag", "").partition("=")
    return Wanted(
        words=tuple(query.get("q", "")[:200].lower().split()),
        runs=tuple(dict.fromkeys(chosen)),
        outcome=query.get("outcome", "") if query.get("outcome", "") in {*OUTCOMES, *TOGETHER, "failed"} else "",
        error=query.get("error", "")[:1000],
        tag=(tag, value),
        order=query.get("order", "") if query.get("order", "") in ORDERS else "order",
        page=page_number(query),
    )


def page_number(query: Mapping[str, str]) -> int:
    """The page of a list that an address asks for, 1 where it names none."""
    number = query.get("page", "")
    return max(1, int(number)) if re.fullmatch("[0-9]{1,7}", number) else 1


def goodness(cell: Cell, measures: Mapping[str, Measure], largest: Mapping[str, float]) -> float | None:
    """0 poor to 1 perfect; a failed answer is 0, one without a value None."""
    if cell.outcome in FAILED:
        return 0.0
    if cell.value is None or cell.measure not in measures:
        return None
    measure, top = measures[cell.measure], largest.get(cell.measure, 1.0)
    share = cell.value if measure.unit == "fraction" or top <= 1 else cell.value / top
    return min(1.0, max(0.0, share if measure.higher_is_better else 1 - share))


def largest_values(rows: Sequence[Row]) -> dict[str, float]:
    """The largest value of each measure, by which those that are no fractions are scaled."""
    found: dict[str, float] = {}
    for row in rows:
        for cell in row.cells:
            if cell.value is not None:
                found[cell.measure] = max(found.get(cell.measure, 0.0), abs(cell.value))
    return found


def chosen_rows(board: Board, wanted: Wanted) -> list[Row]:
    """The rows that fit, in the order asked for."""
    rows = board.rows()
    measures, largest = board.measures(), largest_values(rows)

    def cells(row: Row) -> list[Cell]:
        return [row.cells[place] for place in wanted.runs] if wanted.runs else row.cells

    def every_good(row: Row) -> list[float | None]:
        return [goodness(cell, measures, largest) for cell in cells(row)]

    def goods(row: Row) -> list[float]:
        return [good for good in every_good(row) if good is not None]

    def mean(row: Row, without: float) -> float:
        found = goods(row)
        return sum(found) / len(found) if found else without

    def spread(row: Row) -> float:
        found = goods(row)
        return max(found) - min(found) if len(found) > 1 else -1.0

    orders: dict[str, Callable[[Row], Any]] = {
        "order": lambda row: row.place,
        "worst": lambda row: (mean(row, 2.0), row.place),
        "best": lambda row: (-mean(row, -1.0), row.place),
        "cost": lambda row: (-sum(cell.cost for cell in cells(row)), row.place),
        "spread": lambda row: (-spread(row), row.place),
        "name": lambda row: _natural(row.ident),
    }
    fitting = (row for row in rows if _fits(row, cells(row), wanted) and _together(every_good(row), wanted.outcome))
    return sorted(fitting, key=orders[wanted.order])


def _together(goods: Sequence[float | None], outcome: str) -> bool:
    """True if all runs failed on a sample, or if they differ on it, as was asked for."""
    if outcome == "failed_by_all":
        return bool(goods) and all(good == 0 for good in goods)
    known = [good for good in goods if good is not None]
    return outcome != "differ" or (bool(known) and max(known) - min(known) > _TIE)


def _fits(row: Row, cells: Sequence[Cell], wanted: Wanted) -> bool:
    tag, value = wanted.tag
    if tag and row.tags.get(tag) != value:
        return False
    if wanted.outcome == "failed" and not any(cell.outcome in NOT_ANSWERED for cell in cells):
        return False
    if wanted.outcome in OUTCOMES and not any(cell.outcome == wanted.outcome for cell in cells):
        return False
    if wanted.error and not any(cell.alike == wanted.error for cell in cells):
        return False
    if not wanted.words:
        return True
    text = " ".join([row.ident, *row.tags.values()]).lower()
    return all(word in text for word in wanted.words)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Numbers inside names count as numbers."""
    parts = re.findall(r"\d{1,15}|\D+|\d+", text[:300])
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part.lower()) for part in parts]


def useful_tags(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Tags that divide the samples, with their values."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for tag, value in row.tags.items():
            found.setdefault(tag, {})[value] = None
    return {tag: sorted(values, key=_natural) for tag, values in found.items() if 1 < len(values) <= _MOST_VALUES}


def counted_outcome(name: str, count: int) -> str:
    """Return what stands behind the number of answers of a class: `answered`, `errors`."""
    text = OUTCOMES.get(name, name)
    return f"{text}s" if text in _NOUNS and count != 1 else text


def present_outcomes(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The classes of answers that occur, as choices of a filter."""
    found = {cell.outcome for row in rows for cell in row.cells}
    failed = [("failed", "failed (any)")] if found & NOT_ANSWERED else []
    together = TOGETHER.items() if any(len(row.cells) > 1 for row in rows) else ()
    return [*failed, *together, *((name, text) for name, text in OUTCOMES.items() if name in found)]


def step_of_good(good: float | None) -> int | None:
    """The colour step of a goodness."""
    if good is None:
        return None
    return max(place for place, lower in enumerate(STEPS) if good >= lower or place == 0)


def value_text(cell: Cell, measures: Mapping[str, Measure]) -> str:
    """A value as cards show it: fractions in percent without the sign."""
    if cell.value is None or cell.measure not in measures:
        return "–"
    return points(cell.value) if measures[cell.measure].unit == "fraction" else f"{cell.value:.4g}"
