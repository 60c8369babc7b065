"""The samples that cost a run most, below its table; and those that moved most between two runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import msgspec

from loupe.results.costs import Costs, Counts, costs
from loupe.results.losses import loss_table
from loupe.results.sample_values import sample_values
from loupe.results.sections import format_value
from loupe.results.tables.record import Table
from loupe.results.visible_differences import signed
from loupe.types import Benchmark, Measure, SampleScores

#: Samples named below a table.
WORST = 5
#: Smaller differences are rounding.
TIE = 1e-9


def worst_section(benchmark: Benchmark, scores: Iterable[SampleScores], measure: str = "") -> Table | None:
    """Return the worst samples of a run with what they cost in `measure` ("": the headline).

    None if nothing is lost, or if the cost is unknown.
    """
    measure = measure or benchmark.headline_measure
    found, measures = _costs(benchmark, scores, measure)
    table = loss_table(found, measures, headline=measure, listed=WORST)
    title = f"worst samples by {found.measure}: {table.title[:1].lower()}{table.title[1:]}"
    return replace(table, title=title) if table.rows else None


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of two runs: what it adds to the difference of one run minus the other, and what it costs each.

    `value` and `value_before` are the measure on this sample alone, None if it cannot be computed of one sample.
    """

    sample: str
    difference: float
    cost: float
    cost_before: float
    value: float | None = None
    value_before: float | None = None


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that moved most between two runs by `measure` ("": nobody can tell), of `count` that moved at all.

    `worse` are those that lost most.
    """

    measure: str = ""
    count: int = 0
    most: list[Moved] = []
    worse: list[Moved] = []


#: Goes through the scores of a run, as often as it is called.
Scores = Callable[[], Iterable[SampleScores]]


def movement(
    benchmark: Benchmark, after: Scores, before: Scores, shared: Collection[str], headline: str = ""
) -> Movement:
    """Return what moved over the `shared` samples, which both runs have scored, in `headline` ("": the benchmark's).

    Differences have the sign of the measure.
    """
    headline = headline or benchmark.headline_measure
    (now, known), (then, _) = (
        _costs(benchmark, (row for row in rows() if row.sample in shared), headline) for rows in (after, before)
    )
    measure = next((one for one in known if one.name == now.measure == then.measure), None)
    if measure is None:
        return Movement()
    found = [
        Moved(
            sample=sample,
            difference=measure.merit(then.by_sample.get(sample, 0.0) - now.by_sample.get(sample, 0.0)),
            cost=now.by_sample.get(sample, 0.0),
            cost_before=then.by_sample.get(sample, 0.0),
        )
        for sample in now.by_sample.keys() | then.by_sample.keys()
    ]
    moved = sorted(
        (one for one in found if abs(one.difference) > TIE), key=lambda one: (-abs(one.difference), one.sample)
    )
    most, worse = moved[:WORST], [one for one in moved if measure.merit(one.difference) < 0][:WORST]
    wanted = {one.sample for one in (*most, *worse)}
    values, values_before = (_values(benchmark, rows(), wanted, measure.name) for rows in (after, before))
    valued = {
        one.sample: msgspec.structs.replace(
            one, value=values.get(one.sample), value_before=values_before.get(one.sample)
        )
        for one in (*most, *worse)
    }
    return Movement(
        measure=measure.name,
        count=len(moved),
        most=[valued[one.sample] for one in most],
        worse=[valued[one.sample] for one in worse],
    )


def _values(
    benchmark: Benchmark, scores: Iterable[SampleScores], wanted: Collection[str], measure: str
) -> dict[str, float]:
    """Compute the measure on each of the wanted samples alone."""
    found: dict[str, float] = {}
    for row in scores:
        if row.sample in wanted:
            known = benchmark.measures_of(score.measure for score in row.scores)
            values = sample_values(known, row.scores, benchmark.summarize)
            found |= {row.sample: values[measure]} if measure in values else {}
    return found


def moved_section(found: Movement, unit: str, *, after: str, before: str) -> Table | None:
    """Return the samples that moved most as a table: their own values, and what each adds to the whole difference."""
    if not found.most:
        return None
    rows = [
        (one.sample, format_value(one.value, unit), format_value(one.value_before, unit), added(one, unit))
        for one in found.most
    ]
    more = f", of {found.count:,} that moved" if found.count > len(rows) else ""
    title = f"samples that moved {found.measure} most, {after} minus {before}{more}"
    return Table(title=title, header=("sample", after, before, "adds to the difference"), rows=rows)


def added(one: Moved, unit: str) -> str:
    """Format what a sample adds to the difference of two runs."""
    return signed(one.difference, unit) + (" points" if unit == "fraction" else "")


def _costs(benchmark: Benchmark, scores: Iterable[SampleScores], headline: str) -> tuple[Costs, tuple[Measure, ...]]:
    counts = Counts(scores)
    measures = benchmark.measures_of(counts.measures)
    return costs(measures, counts, headline=headline, summarize=benchmark.summarize), measures
