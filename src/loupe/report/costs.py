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
#: The counts of every sample, and those of perfect answers to them.
Tables = tuple[dict[str, Floats], dict[str, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Losses of the headline by sample, the worst first, and what part of each comes from which measure.

    Losses are in the unit of `measure` and positive: of the headline, or where nobody can tell what a perfect answer is
    worth to it, of the first measure that tells ("": none does). `lost` is what separates the run from a perfect one;
    parts of a composite do add up to it. `without` names measures that it needs and that were not computed: their part
    is not in here.
    """

    by_sample: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lost: float = 0.0
    without: tuple[str, ...] = ()
    measure: str = ""


def costs(
    measures: Sequence[Measure], rows: Iterable[SampleScores], *, headline: str, summarize: Summarize | None
) -> Costs:
    """The losses of a run; none where a perfect answer cannot be told from the counts of any measure.

    A perfect answer has the first count 0, or equal to the second where more is better, or the first half of its counts
    likewise: true of averages, error rates, shares and shares by category, and tried out on the sums.
    """
    tables = {
        measure.name: (table, best)
        for measure, table in _tables(measures, list(rows))
        if (best := _perfect(measure, table))
    }
    others = (measure.name for measure in measures if measure.name != headline)
    tried = (_costs(measures, tables, name, summarize) for name in (headline, *others))
    return next((found for found in tried if found.measure), Costs())


def _costs(
    measures: Sequence[Measure], tables: Mapping[str, Tables], headline: str, summarize: Summarize | None
) -> Costs:
    """The losses of one measure; none where it is no known function of those that have `tables`."""
    used = [measure for measure in measures if measure.name in tables]
    declared = next((measure for measure in measures if measure.name == headline), None)
    if declared is None or not tables or (summarize is None and headline not in tables):
        return Costs()
    samples = sorted({sample for table, _ in tables.values() for sample in table})
    place = {sample: number for number, sample in enumerate(samples)}
    now: dict[str, float] = {}
    mended: dict[str, Floats] = {}
    for measure in used:
        table, best = tables[measure.name]
        sums = np.sum(list(table.values()), axis=0)
        others = np.tile(sums, (len(samples), 1))
        for sample, counts in table.items():
            others[place[sample]] += best[sample] - counts
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
    ideal = {measure.name: np.asarray(float(measure.higher_is_better)) for measure in used if measure.name in known}
    lost = float(whole(ideal) - base)
    if not math.isfinite(lost):
        return Costs()
    return Costs(
        by_sample={samples[number]: float(total[number]) for number in order},
        parts={
            samples[number]: {name: float(part[number]) for name, part in parts.items() if part[number] > 1e-12}
            for number in order
        },
        lost=lost,
        without=needed,
        measure=headline,
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


def _perfect(measure: Measure, table: Mapping[str, Floats]) -> dict[str, Floats]:
    """The counts of perfect answers to the samples: worth exactly 1, 0 where less is better. {}: nobody can tell."""
    if not table or measure.pooled or len({len(counts) for counts in table.values()}) != 1:
        return {}
    size = len(next(iter(table.values())))
    for earned in {1, size // 2} if size > 1 else ():
        found = {sample: _with_all(counts, earned, measure) for sample, counts in table.items()}
        sums = np.sum(list(found.values()), axis=0)
        if sums[earned:].any() and math.isclose(
            float(_value(measure, sums)), float(measure.higher_is_better), abs_tol=1e-9
        ):
            return found
    return {}


def _with_all(counts: Floats, earned: int, measure: Measure) -> Floats:
    best = counts.copy()
    best[:earned] = counts[earned : 2 * earned] if measure.higher_is_better else 0.0
    return best


def _value(measure: Measure, sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        if measure.value is not None:
            return np.asarray(measure.value(sums), dtype=np.float64)
        return np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)


def _matters(whole: Callable[[Mapping[str, Floats]], Floats], name: str) -> bool:
    """Whether the headline depends on a measure at all."""
    return bool(whole({name: np.asarray(1.0)}) != whole({name: np.asarray(0.0)}))
