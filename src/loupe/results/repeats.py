"""The same samples asked several times: how far the values of an engine lie apart when only chance differs.

Each repeat is a run of its own, with its own interval over samples; the spread here is over repeats.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence

import msgspec

from loupe.results.headline import headline_of
from loupe.results.sections import format_range, format_value
from loupe.results.tables.record import Table
from loupe.runs.folder import RunFolder
from loupe.types import FAILED, Result


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """One measure over all repeats; `deviation` is the sample standard deviation."""

    values: list[float]
    mean: float
    deviation: float


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one engine: their runs, every measure, and how many samples got the same answer each time."""

    engine: str
    runs: list[str]
    measures: dict[str, Spread]
    same_answers: int
    samples: int


def repeats_of(engine: str, folders: Sequence[RunFolder], results: Sequence[Result]) -> Repeats:
    """What the finished repeats of an engine have in common, and how far they lie apart."""
    found: dict[str, Spread] = {}
    for name in results[0].measures:
        values = [one.value for each in results if (one := each.measures.get(name)) and one.value is not None]
        if len(values) == len(results):
            found[name] = Spread(values=values, mean=statistics.fmean(values), deviation=statistics.stdev(values))
    answers = [_answers(folder) for folder in folders]
    shared = set.intersection(*map(set, answers))
    return Repeats(
        engine=engine,
        runs=[str(folder.path) for folder in folders],
        measures=found,
        same_answers=sum(len({each[ident] for each in answers}) == 1 for ident in shared),
        samples=len(shared),
    )


def _answers(folder: RunFolder) -> dict[str, bytes]:
    """A digest of each answer; samples without one are left out."""
    places = {ident: place for ident, place in folder.prediction_places().items() if place.mark not in FAILED}
    return {
        ident: hashlib.sha256(one.text.encode("utf-8", "surrogatepass")).digest()
        for ident, one in zip(places, folder.read_predictions(places.values()), strict=True)
    }


def repeats_section(found: Repeats, result: Result) -> Table:
    """The repeats as a table; `result` is that of one of them."""
    headline = headline_of([result]).measure
    order = sorted(found.measures.items(), key=lambda item: item[0] != headline)
    rows = []
    for name, spread in order:
        unit = result.units.get(name, "fraction")
        deviation = format_value(spread.deviation, unit).removesuffix(" %")
        ends = format_range(min(spread.values), max(spread.values), unit)
        rows.append((name, format_value(spread.mean, unit, of=result.measures[name].n), deviation, ends))
    same = f"{found.same_answers:,} of {found.samples:,} samples got the same answer every time"
    return Table(
        title=f"{found.engine}, spread over {len(found.runs)} repeats of the same requests; {same}",
        header=("measure", "mean", "standard deviation", "lowest … highest"),
        rows=rows,
    )
