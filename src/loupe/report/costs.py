"""What each sample costs: how much better the headline would be if this one sample were answered perfectly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from loupe.types import Measure, SampleScores, Values

Floats = npt.NDArray[np.float64]
Summarize = Callable[[Values], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Losses of the headline by sample, the worst first, and what part of each comes from which measure.

    Losses are in the headline's own unit and positive. `lost` is what separates the run from a perfect one; parts of a
    composite do add up to it. `without` names measures that the headline needs and that were not computed: their part
    is not in here.
    """

    by_sample: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lost: float = 0.0
    without: tuple[str, ...] = ()


def costs(
    measures: Sequence[Measure], rows: Iterable[SampleScores], *, headline: str, summarize: Summarize | None
) -> Costs:
    """The losses of a run; none where a perfect answer cannot be told from the counts of a measure.

    A perfect answer has the first count 0, or equal to the second where more is better: true of averages, error rates
    and shares, and tried out on the sums.
    """
    tables = {measure.name: table for measure, table in _tables(measures, list(rows)) if _is_simple(measure, table)}
    used = [measure for measure in measures if measure.name in tables]
    declared = next((measure for measure in measures if measure.name == headline), None)
    if declared is None or (summarize is None and headline not in tables):
        return Costs()
    samples = sorted({sample for table in tables.values() for sample in table})
    place = {sample: number for number, sample in enumerate(samples)}
    now: dict[str, float] = {}
    mended: dict[str, Floats] = {}
    for measure in used:
        table = tables[measure.name]
        sums = np.sum(list(table.values()), axis=0)
        others = np.tile(sums, (len(samples), 1))
        for sample, counts in table.items():
            others[place[sample]] += _perfect(counts, measure) - counts
        now[measure.name] = float(_value(measure, sums))
        mended[measure.name] = _value(measure, others)
    known = [name for name in now if not math.isnan(now[name])]
    sign = 1.0 if declared.higher_is_better else -1.0

    def with_unknown(unknown: float, changed: Mapping[str, Floats]) -> Floats:
        values: Values = {measure.name: unknown for measure in measures}
        values |= {name: now[name] for name in known} | dict(changed)
        values |= summarize(values) if summarize else {}
        return sign * np.asarray(values[headline], dtype=np.float64)

    # A mean over the tasks that occur leaves out what is unknown; a fixed sum needs a number in its place.
    unknown = math.nan if bool(np.isfinite(with_unknown(math.nan, {}))) else 0.0

    def whole(changed: Mapping[str, Floats]) -> Floats:
        return with_unknown(unknown, changed)

    needed = tuple(measure.name for measure in measures if measure.name not in known and _matters(whole, measure.name))
    base = whole({})
    total = whole({name: mended[name] for name in known}) - base
    parts = {name: np.broadcast_to(whole({name: mended[name]}) - base, total.shape) for name in known}
    order = sorted(np.flatnonzero(total > 1e-12).tolist(), key=lambda number: (-total[number], samples[number]))
    best = {measure.name: np.asarray(float(measure.higher_is_better)) for measure in used if measure.name in known}
    return Costs(
        by_sample={samples[number]: float(total[number]) for number in order},
        parts={
            samples[number]: {name: float(part[number]) for name, part in parts.items() if part[number] > 1e-12}
            for number in order
        },
        lost=float(whole(best) - base),
        without=needed,
    )


def _tables(measures: Sequence[Measure], rows: Sequence[SampleScores]) -> list[tuple[Measure, dict[str, Floats]]]:
    """For each measure the sums of every sample that has it."""
    found: list[tuple[Measure, dict[str, Floats]]] = []
    for measure in measures:
        table: dict[str, Floats] = {}
        for row in rows:
            counts = [score.counts for score in row.scores if score.measure == measure.name]
            if counts:
                table[row.sample] = np.sum(np.asarray(counts, dtype=np.float64), axis=0)
        found.append((measure, table))
    return found


def _is_simple(measure: Measure, table: Mapping[str, Floats]) -> bool:
    """Whether counts of a perfect answer are worth exactly 1 (0 where less is better)."""
    if not table or measure.pooled or len({len(counts) for counts in table.values()}) != 1:
        return False
    sums = np.sum(list(table.values()), axis=0)
    if len(sums) < 2 or sums[1] <= 0:
        return False
    value = float(_value(measure, _perfect(sums, measure)))
    return math.isclose(value, float(measure.higher_is_better), abs_tol=1e-9)


def _perfect(counts: Floats, measure: Measure) -> Floats:
    best = counts.copy()
    best[0] = counts[1] if measure.higher_is_better else 0.0
    return best


def _value(measure: Measure, sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        if measure.value is not None:
            return np.asarray(measure.value(sums), dtype=np.float64)
        return np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)


def _matters(whole: Callable[[Mapping[str, Floats]], Floats], name: str) -> bool:
    """Whether the headline depends on a measure at all."""
    return bool(whole({name: np.asarray(1.0)}) != whole({name: np.asarray(0.0)}))
