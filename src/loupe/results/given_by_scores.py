"""A result that came from elsewhere, held against the scores beside it.

A value is kept only if it follows from the scores and lies in its own interval; counts and figures are made anew from
the scores. What these are worth, nobody can say before the answers are scored here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import LoupeError
from loupe.runs.folder import MOST_MEASURES, RunFolder
from loupe.scoring.summary import Origin, summarise
from loupe.stats.estimates import is_share
from loupe.types import Benchmark, Conclusion, Estimate, Measure, Result, SampleScores, Unit

_UNKNOWN = "its benchmark is not here in the version of this run, so this value cannot be checked"
_UNFOUNDED = "the scores of this run do not give the stated value"
_OUTSIDE = "the stated value is outside its own interval"
_IMPOSSIBLE = "the stated share is below 0 or above 1"
_NO_FIGURES = "its scores are too large for figures of strangers; score the answers here to see them"
_FEWER_SLICES = "it states too many slices: the first ones are checked and shown"
#: Bounds on what a stranger's files may cost: bytes of scores with details, all of which are held for the figures;
#: estimates of slices; and these times samples. The scores themselves are bounded where they are read.
_MOST_DETAILS, _MOST_ESTIMATES, _MOST_PLACES = 32 * 10**6, 20_000, 20_000_000
Slices: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Estimate]]]
_UNITS: Mapping[str, Unit] = {"fraction": "fraction", "count": "count"}


def given_by_scores(folder: RunFolder, stored: Result, *, whole: bool = True) -> Result:
    """Return what the stored scores say, with the stated values and intervals that agree with them.

    Not `whole`: for a list, which shows measures alone, and neither slices nor figures are computed. Either way a
    stranger's files cost bounded memory, and time that grows as they do.
    """
    if len(stored.measures) > MOST_MEASURES:
        few = {name: one for name, one in stored.measures.items() if name == stored.headline}
        stored = msgspec.structs.replace(stored, measures=few)
    stated: Slices = {}
    known = _known_benchmark(folder)
    benchmark = known or _stand_in(stored)
    unfounded = _UNFOUNDED if known else _UNKNOWN
    try:
        stated = _stated_slices(stored, folder) if whole else {}
        found = _summary(folder, benchmark, stored, stated, whole=whole)
    except Exception:  # noqa: BLE001  a stranger's files, and what a benchmark's own rules make of their details
        found = msgspec.structs.replace(stored, measures={}, slices={}, outcomes={}, figures={}, official="")
    shares = {one.name for one in benchmark.measures_of(stored.measures) if is_share(one)}
    wrong = {
        name: why
        for name, given in stored.measures.items()
        if (why := _why_not(given, found.measures.get(name), unfounded, share=name in shares))
    }
    slices = {
        tag: {
            value: {
                name: given
                for name, given in estimates.items()
                if not _why_not(
                    given, found.slices.get(tag, {}).get(value, {}).get(name), unfounded, share=name in shares
                )
            }
            for value, estimates in values.items()
        }
        for tag, values in stated.items()
    }
    left_out = [_FEWER_SLICES] if whole and len(stated) < len(stored.slices) else []
    return msgspec.structs.replace(
        found,
        measures={**stored.measures, **{name: Estimate(value=None, n=stored.measures[name].n) for name in wrong}},
        slices=slices,
        speed=stored.speed,
        currency=stored.currency,
        not_computed=stored.not_computed | found.not_computed | wrong,
        published_total=found.published_total or stored.published_total,
        warnings=list(dict.fromkeys([*found.warnings, *left_out, *stored.warnings])),
    )


def _why_not(given: Estimate, found: Estimate | None, unfounded: str, *, share: bool) -> str:
    """Return why a stated value is not shown: `unfounded` if the scores do not give it; "" if it is right."""
    if given.value is None:
        return ""
    if found is None or found.value is None or given.n != found.n:
        return unfounded
    if not math.isclose(given.value, found.value, rel_tol=1e-9, abs_tol=1e-12):
        return unfounded
    ends = [end for end in (given.low, given.high) if end is not None]
    low, high = given.low, given.high
    if len(ends) == 1 or (low is not None and high is not None and not _near(low, given.value, high)):
        return _OUTSIDE
    possible = not share or all(_near(0.0, number, 1.0) for number in (given.value, *ends))
    return "" if possible else _IMPOSSIBLE


def _near(low: float, value: float, high: float) -> bool:
    slack = 1e-9 * max(1.0, abs(value))
    return low - slack <= value <= high + slack


def _stated_slices(stored: Result, folder: RunFolder) -> Slices:
    """Return the first slices that a result states, as many as are computed in a few seconds."""
    rows = max(1, len(folder.score_places()))
    room = min(_MOST_ESTIMATES // max(1, len(stored.measures)), _MOST_PLACES // rows)
    found: dict[str, Mapping[str, Mapping[str, Estimate]]] = {}
    for tag, values in stored.slices.items():
        room -= len(values)
        if room < 0:
            break
        found[tag] = values
    return found


def _summary(folder: RunFolder, benchmark: Benchmark, stored: Result, stated: Slices, *, whole: bool) -> Result:
    """Return the result that the stored scores give, without intervals. Raises whatever is wrong with them."""
    rows = len(folder.score_places())
    total = max(stored.total, rows)
    origin = Origin(
        benchmark=stored.benchmark, engine=stored.engine, signature=stored.signature, total=total, part=stored.part
    )
    large = folder.scores_file.lstat().st_size > _MOST_DETAILS
    if benchmark.conclude and whole and not large:
        conclusion = benchmark.conclude(list(folder.scores()))
    else:
        conclusion = Conclusion(failed_are=stored.failed_are, warnings=[_NO_FIGURES] if whole and large else [])
    found = summarise(benchmark, _bounded(folder, stated), origin, draws=0, conclusion=conclusion)
    unread = {"missing": total - rows} if total > rows else {}
    return msgspec.structs.replace(found, version=stored.version, outcomes=found.outcomes | unread)


def _bounded(folder: RunFolder, stated: Slices) -> Iterator[SampleScores]:
    """Yield the scores with the tags of the stated slices."""

    def kept(tags: Mapping[str, str]) -> dict[str, str]:
        return {tag: value for tag, value in tags.items() if value in stated.get(tag, ())}

    for row in folder.counts():
        scores = [replace(score, tags=kept(score.tags)) if score.tags else score for score in row.scores]
        yield msgspec.structs.replace(row, tags=kept(row.tags), scores=scores)


def _known_benchmark(folder: RunFolder) -> Benchmark | None:
    """Return the benchmark of a run, or None if it is not here in the version of the run."""
    try:
        found = benchmark_of_run(folder.info.benchmark)
    except (LoupeError, OSError):
        return None
    return found if found.version == folder.info.version else None


def _stand_in(stored: Result) -> Benchmark:
    """Return a benchmark with the measures of a result, each the mean that its scores give."""
    measures = tuple(
        Measure(
            name=name,
            higher_is_better=stored.directions.get(name, True),
            unit=_UNITS.get(stored.units.get(name, ""), "number"),
        )
        for name in stored.measures
    )
    return Benchmark(
        title=stored.benchmark,
        version=stored.version,
        task="",
        measures=measures,
        headline=stored.headline,
        load=_nothing,
        score=_nothing,
    )


def _nothing(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("stands in for a benchmark that is not here")
