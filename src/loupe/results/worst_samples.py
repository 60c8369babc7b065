"""The samples that cost a run most, below its table; and those that moved most between two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from loupe.results.costs import Costs, Counts, costs
from loupe.results.losses import loss_table, points
from loupe.results.sections import Section
from loupe.results.visible_differences import signed
from loupe.types import Benchmark, Measure, SampleScores

#: Samples named below a table.
WORST = 5
#: Smaller differences are rounding.
TIE = 1e-9


def worst_section(benchmark: Benchmark, scores: Iterable[SampleScores]) -> Section | None:
    """The worst samples of a run with what they cost; None where nothing is lost, or nobody can tell."""
    found, measures = _costs(benchmark, scores)
    table = loss_table(found, measures, engine="", headline=benchmark.headline_measure, listed=WORST)
    if not table.rows:
        return None
    worst = [(row.sample, row.cost, *row.parts) for row in table.rows]
    title = f"worst samples by {found.measure}: {table.sentence[:1].lower()}{table.sentence[1:]}"
    return Section(title=title, header=("sample", "cost", *table.parts), rows=worst)


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of two runs: what it adds to the difference of one run minus the other, and what it costs each."""

    sample: str
    difference: float
    cost: float
    cost_before: float


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that moved most between two runs by `measure` ("": nobody can tell), of `count` that moved at all.

    `worse` are those that lost most.
    """

    measure: str = ""
    count: int = 0
    most: list[Moved] = []
    worse: list[Moved] = []


def movement(
    benchmark: Benchmark, after: Iterable[SampleScores], before: Iterable[SampleScores], shared: Collection[str]
) -> Movement:
    """What moved over the `shared` samples, which both runs have scored; differences have the sign of the measure."""
    (now, _), (then, _) = (_costs(benchmark, (row for row in rows if row.sample in shared)) for rows in (after, before))
    measure = next((one for one in benchmark.measures if one.name == now.measure == then.measure), None)
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
    worse = [one for one in moved if measure.merit(one.difference) < 0]
    return Movement(measure=measure.name, count=len(moved), most=moved[:WORST], worse=worse[:WORST])


def moved_section(found: Movement, unit: str, *, after: str, before: str) -> Section | None:
    """The samples that moved most, as a table; None where none did."""
    if not found.most:
        return None
    rows = [
        (one.sample, signed(one.difference, unit), points(one.cost, unit), points(one.cost_before, unit))
        for one in found.most
    ]
    more = f", of {found.count:,} that moved" if found.count > len(rows) else ""
    title = f"samples that moved most, {after} minus {before}{more}"
    return Section(title=title, header=("sample", found.measure, f"{after} loss", f"{before} loss"), rows=rows)


def _costs(benchmark: Benchmark, scores: Iterable[SampleScores]) -> tuple[Costs, tuple[Measure, ...]]:
    counts = Counts(scores)
    measures = benchmark.measures_of(counts.measures)
    return costs(measures, counts, headline=benchmark.headline_measure, summarize=benchmark.summarize), measures
