"""Compute what each sample costs: how much better the headline would be if this sample were answered perfectly."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loupe.types import Measure, SampleScores, Values

Floats = npt.NDArray[np.float64]
Summarize = Callable[[Values], Values]
#: Samples, and the counts of each in a row.
Table: TypeAlias = tuple[list[str], Floats]


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


class Counts:
    """The counts of a run's samples, summed within each sample, in columns of numbers."""

    def __init__(self, rows: Iterable[SampleScores]) -> None:
        self._columns: dict[str, _Column] = {}
        for row in rows:
            found: dict[str, list[tuple[float, ...]]] = {}
            for score in row.scores:
                found.setdefault(score.measure, []).append(score.counts)
            for name, counts in found.items():
                self._columns.setdefault(name, _Column()).add(row.sample, counts)

    @property
    def measures(self) -> Collection[str]:
        """The names of the measures that have scores."""
        return self._columns.keys()

    def table(self, measure: str) -> Table | None:
        """Those of one measure; None where there are none, or not as many for each sample."""
        column = self._columns.get(measure)
        return column.table() if column else None


class _Column:
    def __init__(self) -> None:
        self._samples: list[str] = []
        self._counts = array("d")
        self._widths: set[int] = set()

    def add(self, sample: str, counts: Sequence[tuple[float, ...]]) -> None:
        sums = np.sum(np.asarray(counts, dtype=np.float64), axis=0).tolist() if len(counts) > 1 else counts[0]
        self._samples.append(sample)
        self._counts.extend(sums)
        self._widths.add(len(sums))

    def table(self) -> Table | None:
        if len(self._widths) != 1 or 0 in self._widths:
            return None
        return self._samples, np.asarray(self._counts).reshape(len(self._samples), -1)


def costs(measures: Sequence[Measure], counts: Counts, *, headline: str, summarize: Summarize | None) -> Costs:
    """The losses of a run; none where a perfect answer cannot be told from the counts of any measure.

    A perfect answer has the first count 0, or equal to the second where more is better, or the first half of its counts
    likewise: true of averages, error rates, shares and shares by category, and tried out on the sums.
    """
    tables = {
        measure.name: (*table, best)
        for measure in measures
        if (table := counts.table(measure.name)) and (best := _perfect(measure, table[1])) is not None
    }
    others = (measure.name for measure in measures if measure.name != headline)
    tried = (_costs(measures, tables, name, summarize) for name in (headline, *others))
    return next((found for found in tried if found.measure), Costs())


def _costs(
    measures: Sequence[Measure],
    tables: Mapping[str, tuple[list[str], Floats, Floats]],
    headline: str,
    summarize: Summarize | None,
) -> Costs:
    """The losses of one measure; none where it is no known function of those that have `tables`."""
    used = [measure for measure in measures if measure.name in tables]
    declared = next((measure for measure in measures if measure.name == headline), None)
    if declared is None or not tables or (summarize is None and headline not in tables):
        return Costs()
    samples = sorted({sample for names, _, _ in tables.values() for sample in names})
    place = {sample: number for number, sample in enumerate(samples)}
    now: dict[str, float] = {}
    mended: dict[str, Floats] = {}
    for measure in used:
        names, table, best = tables[measure.name]
        sums = np.sum(table, axis=0)
        others = np.tile(sums, (len(samples), 1))
        others[[place[sample] for sample in names]] += best - table
        now[measure.name] = float(_value(measure, sums))
        mended[measure.name] = _value(measure, others)
    del place
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
    if not total.ndim:
        # It is made of measures alone that nobody can mend sample by sample, as a mean over subsets is.
        return Costs()
    parts = {name: np.broadcast_to(whole({name: mended[name]}) - base, total.shape) for name in known}
    # The samples are sorted, and a stable order leaves them so where they cost the same.
    dearest_first = np.argsort(-total, kind="stable")
    order = dearest_first[total[dearest_first] > 1e-12].tolist()
    ideal = {measure.name: np.asarray(float(measure.higher_is_better)) for measure in used if measure.name in known}
    lost = float(whole(ideal) - base)
    if not math.isfinite(lost):
        return Costs()
    by_sample = {samples[number]: float(total[number]) for number in order}
    return Costs(
        by_sample=by_sample,
        parts=Parts(dict(zip(by_sample, order, strict=True)), parts),
        lost=lost,
        without=needed,
        measure=headline,
    )


class Parts(Mapping[str, Mapping[str, float]]):
    """For each sample that costs anything what comes from which measure, made when it is asked for."""

    def __init__(self, numbers: Mapping[str, int], losses: Mapping[str, Floats]) -> None:
        self._numbers, self._losses = numbers, losses

    def __getitem__(self, sample: str) -> dict[str, float]:
        number = self._numbers[sample]
        return {name: float(loss[number]) for name, loss in self._losses.items() if loss[number] > 1e-12}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _perfect(measure: Measure, table: Floats) -> Floats | None:
    """The counts of perfect answers to the samples: worth exactly 1, 0 where less is better. None: nobody can tell."""
    size = table.shape[1]
    for earned in {1, size // 2} if size > 1 and not measure.pooled else ():
        best = table.copy()
        best[:, :earned] = table[:, earned : 2 * earned] if measure.higher_is_better else 0.0
        sums = np.sum(best, axis=0)
        if sums[earned:].any() and math.isclose(
            float(_value(measure, sums)), float(measure.higher_is_better), abs_tol=1e-9
        ):
            return best
    return None


def _value(measure: Measure, sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        if measure.value is not None:
            return np.asarray(measure.value(sums), dtype=np.float64)
        return np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)


def _matters(whole: Callable[[Mapping[str, Floats]], Floats], name: str) -> bool:
    """True if the headline depends on a measure at all."""
    return bool(whole({name: np.asarray(1.0)}) != whole({name: np.asarray(0.0)}))
