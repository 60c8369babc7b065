"""Curves over a ladder of rungs that the same base pages climb, and the figures that are read off them.

All rungs of a base page are drawn together, with the draws of every other interval here (bootstrap.py), so that a
figure of several rungs is one figure in each draw, and what base pages have in common does not widen it. A crossing is
read off the monotone curve that is nearest to the values (isotonic regression; R. Barlow and others, Statistical
Inference under Order Restrictions, 1972), straight between rungs. Method and coverage: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from loupe.stats.analysis import DRAWS
from loupe.stats.bootstrap import Resampled, interval, multiplicities, variance
from loupe.stats.clusters import Floats
from loupe.stats.measure_values import bounds_of, value_of
from loupe.types import Estimate, Measure

#: Where a crossing lies: on the ladder; the curve stays on the good side; it is bad from the first rung on; unknown.
Where: TypeAlias = Literal["within", "never", "always", "unknown"]
#: What is measured on one rung of one base page: base page, place on the ladder, counts of the measure.
Rung: TypeAlias = tuple[str, float, Sequence[float]]


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """The place on a ladder where a curve crosses a level, with its 95 % interval, from `n` base pages.

    "never": it stays on the good side up to the hardest rung; "always": it is beyond the level from the easiest rung
    on; "unknown": nothing to measure it by. `value` is None in all three. An end of the interval that is None lies
    beyond the ladder: `easiest` or `hardest` says past which of its ends, in the ladder's unit.
    """

    where: Where
    value: float | None = None
    low: float | None = None
    high: float | None = None
    easiest: float
    hardest: float
    n: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure on every rung: `values` of shape (1 + draws + base pages, rungs), nan where nothing was measured.

    The first row is the value, then come the draws, then the values with each base page left out. `places` are in the
    unit of the ladder, from easy to hard; `bases` says how many base pages have each rung. `bounds` are those of the
    measure.
    """

    measure: Measure
    places: tuple[float, ...]
    bases: tuple[int, ...]
    values: Floats
    draws: int
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def weakest(self) -> int:
        """The base pages of the rung that has fewest: what a figure of all rungs stands on."""
        return min(self.bases)

    def accuracy(self) -> Floats:
        """The share that is right, in 0..1, of the same shape: an error rate counts as 1 less the rate."""
        return np.clip(self.values if self.measure.higher_is_better else 1 - self.values, 0.0, 1.0)


def curve(
    measure: Measure, rungs: Iterable[Rung], places: Sequence[float], *, draws: int = DRAWS, seed: int = 0
) -> Curve:
    """The curve of all base pages that have one of `places`, which go from easy to hard.

    Rungs at other places are not looked at. A base page need not have every rung, but what it has is drawn together.
    Counts of one base page on one rung are summed; the order of `rungs` changes nothing. Raises ValueError for fewer
    than two places, and for places without an order.
    """
    order = np.diff(places)
    if len(places) < 2 or not (np.all(order > 0) or np.all(order < 0)):
        raise ValueError(f"places {list(places)} of a ladder have no order")
    sums: dict[str, dict[int, Floats]] = {}
    column = {place: number for number, place in enumerate(places)}
    for base, place, counts in rungs:
        if (number := column.get(place)) is not None:
            row = sums.setdefault(base, {})
            row[number] = row.get(number, 0.0) + np.asarray(counts, float)
    if not sums:
        return Curve(measure, tuple(places), (0,) * len(places), np.full((1, len(places)), np.nan), 0)
    width = next(len(counts) for row in sums.values() for counts in row.values())
    # The last count of a rung is 1 where the base page has it.
    table = np.zeros((len(sums), len(places), width + 1))
    for line, base in zip(table, sorted(sums), strict=True):
        for number, found in sums[base].items():
            line[number] = [*found, 1.0]
    flat = table.reshape(len(sums), -1)
    total = flat.sum(axis=0)
    drawn = [part @ flat for part in multiplicities(len(sums), draws=draws, seed=seed)]
    stacked = np.concatenate([total[None], *drawn, total - flat]).reshape(-1, *table.shape[1:])
    values = np.where(stacked[..., -1] > 0, value_of(measure, stacked[..., :-1]), np.nan)
    bases = tuple(int(table[:, at, -1].sum()) for at in range(len(places)))
    seen = value_of(measure, table[table[..., -1] > 0][:, :-1])
    return Curve(measure, tuple(places), bases, values, draws, bounds_of(measure, seen[np.isfinite(seen)]))


def points(found: Curve) -> list[Estimate]:
    """The value on every rung, each with its own 95 % interval: a band of single intervals, not one for the curve."""
    return [_estimate(found, found.values[:, rung], bases, found.bounds) for rung, bases in enumerate(found.bases)]


def reliance(found: Curve) -> list[Estimate]:
    """How much each rung is above the first: prior reliance, where the first is natural text and the measure a CER."""
    reach = found.bounds[1] - found.bounds[0]
    return [
        _estimate(found, found.values[:, rung] - found.values[:, 0], min(bases, found.bases[0]), (-reach, reach))
        for rung, bases in enumerate(found.bases)
    ]


def area(found: Curve) -> Estimate:
    """The area under the accuracy between the first and the last place, in 0..1; 1: everything is right everywhere."""
    accuracy, steps = found.accuracy(), np.abs(np.diff(found.places))
    under = ((accuracy[:, 1:] + accuracy[:, :-1]) / 2) @ steps
    return _estimate(found, under / steps.sum(), found.weakest, (0.0, 1.0))


def limit(found: Curve, level: float) -> Crossing:
    """Where the measure crosses `level` for the worse: the legibility limit, for a CER of 0.05 over x-heights."""
    better = found.measure.higher_is_better
    return _crossing(found, -found.values if better else found.values, -level if better else level)


def half_loss(found: Curve, *, log: bool = False) -> Crossing:
    """Where half of the first rung's accuracy is gone; `log`: between places in even ratios, as of tokens on a page.

    Unknown where nothing was right on the first rung.
    """
    accuracy = found.accuracy()
    with np.errstate(all="ignore"):
        lost = 1 - accuracy / accuracy[:, :1]
    return _crossing(found, lost, 0.5, log=log)


def _estimate(
    found: Curve, values: Floats, bases: int, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    if not math.isfinite(values[0]):
        return Estimate(value=None, n=bases)
    low, high = interval(_resampled(found, values, bases, bounds)) or (None, None)
    return Estimate(value=float(values[0]), low=low, high=high, n=bases)


def _resampled(
    found: Curve, values: Floats, bases: int, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Resampled:
    after = 1 + found.draws
    error = math.sqrt(variance(values[0], values[after:], bases))
    return Resampled(float(values[0]), values[1:after], values[after:], bases, max(1, bases - 1), error, bounds)


def _crossing(found: Curve, bad: Floats, level: float, *, log: bool = False) -> Crossing:
    """Where values that grow as things get worse reach a level; what lies beyond the ladder counts as its end."""
    empty = Crossing(where="unknown", easiest=found.places[0], hardest=found.places[-1], n=found.weakest)
    if not np.all(np.isfinite(bad[0])):
        return empty
    steps = _steps_to(_monotone(bad), level)
    onto = _places(found.places, log=log)
    last = len(found.places) - 1
    # Draws beyond the ladder lie at its end; they say on which side, and no more.
    near = interval(_resampled(found, np.clip(steps, 0.0, last), found.weakest)) or (0.0, last)
    inside = [None if end <= 0 or end >= last else onto(end) for end in near]
    if found.places[0] > found.places[-1]:
        inside.reverse()
    first = float(steps[0])
    where: Where = "always" if first < 0 else "never" if first > last else "within"
    value = onto(first) if where == "within" else None
    return msgspec.structs.replace(empty, where=where, value=value, low=inside[0], high=inside[1])


def _monotone(values: Floats) -> Floats:
    """The nearest values that never fall along the last axis: the largest of the least means (min-max formula)."""
    rungs = values.shape[-1]
    sums = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    found = np.empty_like(values)
    for rung in range(rungs):
        least = [
            np.min([(sums[..., end] - sums[..., start]) / (end - start) for end in range(rung + 1, rungs + 1)], axis=0)
            for start in range(rung + 1)
        ]
        found[..., rung] = np.max(least, axis=0)
    return found


def _steps_to(rising: Floats, level: float) -> Floats:
    """How many rungs, and parts of one, each row climbs until it reaches a level; −1 and `rungs` where it is beyond."""
    rungs = rising.shape[-1]
    reached = rising >= level
    first = np.where(reached.any(axis=-1), reached.argmax(axis=-1), rungs)
    inner = np.clip(first, 1, rungs - 1)[..., None]
    before, after = (np.take_along_axis(rising, at, axis=-1)[..., 0] for at in (inner - 1, inner))
    with np.errstate(all="ignore"):
        between = inner[..., 0] - 1 + (level - before) / (after - before)
    steps = np.where(first == 0, np.where(rising[..., 0] > level, -1.0, 0.0), between)
    return np.where(np.isfinite(rising).all(axis=-1), np.where(first == rungs, float(rungs), steps), np.nan)


def _places(places: Sequence[float], *, log: bool) -> Callable[[float], float]:
    """From rungs and parts of one to the unit of the ladder."""

    def place(steps: float) -> float:
        values = np.log(places) if log else np.asarray(places, float)
        found = float(np.interp(steps, np.arange(len(places)), values))
        return math.exp(found) if log else found

    return place
