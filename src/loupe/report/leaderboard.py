"""Results as the tables of the report: leaderboard with whiskers and shared ranks, slices, failures, diagnostics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from loupe.results.groups import Entrant, Group
from loupe.results.headline import has_value, why_nothing
from loupe.results.partial_runs import size_marks
from loupe.results.sections import (
    ALARMING,
    NOTHING_HERE,
    failed_count,
    format_diagnostic,
    format_estimate,
    format_margin,
    format_value,
    says_twice,
)
from loupe.results.speed import speed_table
from loupe.results.tables.record import Cell, Table
from loupe.results.unverified import OWN, drafted_truth
from loupe.types import Estimate, Measure, Outcome, Result

#: Rows of one table of slices, and failures listed by name.
SLICE_LIMIT = 40
FAILURE_LIMIT = 200
#: Measures that stand in the leaderboard itself; with more there is a table of all of them below.
COLUMN_LIMIT = 4
#: Lower ends of the seven colour steps, 1 being perfect. They crowd near 1, because that is where text recognition is.
STEPS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whisker:
    """An interval on the common axis, in percent of its width; None where there is no interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One engine in the leaderboard; `place` is its place in the group."""

    rank: str
    engine: str
    cells: list[Cell]
    whisker: Whisker | None
    failed: int | None
    total: int
    alarm: bool
    seconds: str
    mark: str = ""
    size: str = ""
    wins: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The scale of the whiskers: (position in percent, label) of each tick."""

    low: float
    high: float
    ticks: list[tuple[float, str]]

    def position(self, value: float) -> float:
        """Return the position of a value, in percent of the width."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTable:
    """One tag: a row for each of its values, with the measure it is told by, and a cell for each engine.

    `named` says whether the measure is not the headline in all rows, so that each must tell its own.
    """

    tag: str
    rows: list[tuple[str, Measure, str, list[Cell]]]
    hidden: int
    named: bool = False


def axis(estimates: Sequence[Estimate], unit: str) -> Axis:
    """A scale that holds all values and intervals, with a few round ticks."""
    points = [point for item in estimates for point in (item.low, item.value, item.high) if point is not None]
    low, high = (min(points), max(points)) if points else (0.0, 1.0)
    padding = max((high - low) * 0.08, 0.004 if unit == "fraction" else abs(high) * 0.004, 1e-9)
    low, high = low - padding, high + padding
    if unit == "fraction":
        low, high = max(low, -0.01), (min(high, 1.01) if max(points, default=1.0) <= 1 else high)
    step = round_step((high - low) / 6)
    first = math.ceil(low / step)
    scale = Axis(low=low, high=high, ticks=[])
    for index in range(first, math.floor(high / step) + 1):
        value = index * step
        if unit == "fraction" and not -1e-9 <= value <= max([1.0, *points]) + 1e-9:
            continue  # Nothing can be below 0 % or, as long as nothing is, above 100 %.
        label = f"{100 * value:.6g}" if unit == "fraction" else f"{value:.6g}"
        scale.ticks.append((scale.position(value), label))
    return scale


def round_step(raw: float) -> float:
    """The next larger 1, 2 or 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)


def step_of(value: float | None, measure: Measure) -> int | None:
    """The colour step 0 (poor) to 6 (nearly perfect) of a fraction or bounded number; others have none here."""
    if value is None or not (measure.bounded or measure.unit == "fraction"):
        return None
    goodness = value if measure.higher_is_better else 1 - value
    return max(index for index, lower in enumerate(STEPS) if goodness >= lower or index == 0)


def cell(estimate: Estimate | None, measure: Measure) -> Cell:
    """Format an estimate for a table."""
    if estimate is None:
        return Cell(text="–")
    return Cell(
        text=format_estimate(estimate, measure.unit),
        margin=format_margin(estimate, measure.unit),
        estimate=estimate,
        step=step_of(estimate.value, measure),
    )


def measured(result: Result | None, measure: Measure) -> Cell:
    """Format a measure of a run for a table; next to a dash stands why it was not computed."""
    return sliced(result, result.measures if result else {}, measure)


def sliced(result: Result | None, estimates: Mapping[str, Estimate], measure: Measure) -> Cell:
    """Format a measure of a slice of a run, which has these estimates, as `measured` does."""
    if result is None:
        return Cell(text="–", note="not scored yet")
    found = cell(estimates.get(measure.name), measure)
    if _has_value(estimates, measure):
        return found
    reason = NOTHING_HERE if has_value(result, measure.name) else why_nothing(result, measure.name)
    return replace(found, note=reason)


def columns(group: Group) -> list[Measure]:
    """The measures that any engine has a value for, the headline first."""
    present = {name for result in group.results for name, item in result.measures.items() if item.value is not None}
    shown = (m for m in group.measures if m.name in present and not says_twice(group.results, m.name))
    return sorted(shown, key=lambda m: m.name != group.headline)


def measure_rows(group: Group) -> list[tuple[Measure, str, list[Cell]]]:
    """Every measure with its n and a cell for each engine, where the leaderboard cannot hold them all."""
    shown = columns(group)
    if len(shown) <= COLUMN_LIMIT:
        return []
    table = []
    for measure in shown:
        cells = [measured(entrant.result, measure) for entrant in group.entrants]
        table.append((measure, common_n(cells), cells))
    return table


def common_n(cells: Sequence[Cell]) -> str:
    """Return how many units each cell of a row comes from; "" if engines differ, and each cell must tell its own."""
    found = {item.n for item in cells if item.n}
    return f"{found.pop():,}" if len(found) == 1 else ""


def headline_axis(group: Group) -> Axis | None:
    """The common scale of the headline's whiskers; None where nothing is scored."""
    measure = next((m for m in columns(group) if m.name == group.headline), None)
    found = [result.measures[group.headline] for result in group.results if group.headline in result.measures]
    return axis(found, measure.unit) if measure and found else None


def rows(group: Group, ranks: Sequence[str], *, winner: int = -1) -> list[Row]:
    """The leaderboard by rank, then in the group's order; `winner` is the place of the one that wins, if any does."""
    scale, shown = headline_axis(group), columns(group)[:COLUMN_LIMIT]
    sizes = size_marks([entrant.result for entrant in group.entrants])
    found = [
        replace(_row(group, entrant, rank, scale, shown), size=size, wins=place == winner, place=place)
        for place, (entrant, rank, size) in enumerate(zip(group.entrants, ranks, sizes, strict=True))
    ]
    return sorted(found, key=lambda row: int(row.rank) if row.rank.isdigit() else len(found) + 1)


def _row(group: Group, entrant: Entrant, rank: str, scale: Axis | None, shown: Sequence[Measure]) -> Row:
    result = entrant.result
    if result is None:
        total = entrant.run.info.total or len(entrant.predictions)
        return Row(
            rank="–", engine=entrant.label, cells=[measured(result, measure) for measure in shown], whisker=None,
            failed=None, total=total, alarm=False, seconds="",
        )  # fmt: skip
    failed = failed_count(result)
    seconds = result.speed.get("seconds_per_page")
    return Row(
        rank=rank,
        engine=entrant.label,
        cells=[measured(result, measure) for measure in shown],
        whisker=_whisker(result.measures.get(group.headline), scale),
        failed=failed,
        total=result.total,
        alarm=failed > ALARMING * max(result.total, 1),
        seconds=f"{seconds:.3g}" if seconds else "",
        mark=OWN if drafted_truth(result) else "",
    )


def _whisker(estimate: Estimate | None, scale: Axis | None) -> Whisker | None:
    if estimate is None or estimate.value is None or scale is None:
        return None
    ends = estimate.low, estimate.high
    low, high = (None if end is None else scale.position(end) for end in ends)
    return Whisker(value=scale.position(estimate.value), low=low, high=high)


def slice_tables(group: Group) -> list[SliceTable]:
    """One table for each tag with at least two values, by the headline measure (else the first one present).

    A row has one measure for all engines: numbers of different ones never stand side by side.
    """
    order = columns(group)
    tags = list(dict.fromkeys(tag for result in group.results for tag in result.slices))
    tables = [_slice_table(tag, group, order) for tag in tags]
    tables = [table for table in tables if len(table.rows) > 1]
    named = any(measure.name != order[0].name for table in tables for _, measure, _, _ in table.rows)
    return [replace(table, named=named) for table in tables]


def _slice_table(tag: str, group: Group, order: Sequence[Measure]) -> SliceTable:
    results = [entrant.result for entrant in group.entrants]
    values = list(dict.fromkeys(value for result in results if result for value in result.slices.get(tag, {})))
    table = []
    for value in values:
        estimates = [result.slices.get(tag, {}).get(value, {}) if result else {} for result in results]
        measure = next((one for one in order if any(_has_value(each, one) for each in estimates)), None)
        if measure is not None:
            pairs = zip(results, estimates, strict=True)
            found = [sliced(result, each, measure) for result, each in pairs]
            table.append((value, measure, common_n(found), found))
    largest = {value: -max(item.n for item in cells) for value, _, _, cells in table}
    table.sort(key=lambda row: (largest[row[0]], row[0]) if len(table) > SLICE_LIMIT else (0, row[0]))
    return SliceTable(tag=tag, rows=table[:SLICE_LIMIT], hidden=max(0, len(table) - SLICE_LIMIT))


def _has_value(estimates: Mapping[str, Estimate], measure: Measure) -> bool:
    return measure.name in estimates and estimates[measure.name].value is not None


def beside(group: Group) -> list[Table]:
    """Numbers beside the score, with a column for each engine: answers by outcome, diagnostics, speed."""
    results = [entrant.result for entrant in group.entrants]
    numbers = [result.diagnostics if result else {} for result in results]
    names = list(dict.fromkeys(name for column in numbers for name in column))
    kept = [name for name in names if not (name.endswith("_share") and name.removesuffix("_share") in names)]
    tables = {
        "answers": _outcome_rows(results),
        "diagnostics": [(name.replace("_", " "), [_diagnostic(name, column) for column in numbers]) for name in kept],
        "speed": speed_table(results),
    }
    labels = [entrant.label for entrant in group.entrants]
    return [
        Table(title="", header=(title, *labels), rows=[(name, *cells) for name, cells in found])
        for title, found in tables.items()
    ]


def _outcome_rows(results: Sequence[Result | None]) -> list[tuple[str, list[str]]]:
    """Return how many samples had which outcome, and their share, for each engine."""
    counted = [result.outcomes if result else {} for result in results]
    present = [name for name in get_args(Outcome) if any(count.get(name) for count in counted)]
    return [(name, [_with_share(count.get(name, 0), sum(count.values())) for count in counted]) for name in present]


def _with_share(count: int, total: int) -> str:
    return f"{count:,} ({format_value(count / total, 'fraction')})" if 0 < count < total else f"{count:,}"


def _diagnostic(name: str, column: dict[str, float]) -> str:
    """A count with its share, a rate in percent, or a number."""
    if name not in column:
        return "–"
    value, share = column[name], column.get(f"{name}_share")
    if share is not None:
        return f"{value:,.6g} ({format_value(share, 'fraction')})" if value else "0"
    return format_value(value, "fraction") if name.endswith("_share") else format_diagnostic(name, value)


def failures(group: Group) -> tuple[list[tuple[str, str, str, str]], int]:
    """(engine, sample, class, error) of failed samples, and how many more there are."""
    found = [
        (entrant.label, failure.sample, failure.outcome, " ".join(failure.error.split())[:400])
        for entrant in group.entrants
        for failure in (entrant.result.failures if entrant.result else [])
    ]
    return found[:FAILURE_LIMIT], max(0, len(found) - FAILURE_LIMIT)
