"""Paired comparison of runs: the same clusters are drawn for both, so that hard pages are hard for both.

Source: P. Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004 (paired bootstrap);
S. Holm, Scandinavian Journal of Statistics 6 (1979). Method: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import msgspec

from loupe.stats.bootstrap import DRAWS, Resampled, interval, p_value, resample
from loupe.stats.clusters import Row, sort_into_clusters
from loupe.types import Measure, Values

#: Corrected p-values from here on are no difference.
LEVEL = 0.05


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two runs over the clusters that both have (`shared` of them): a minus b.

    None where it was not computed in one of the runs; interval and p-values are None for a single cluster, too.
    """

    value_a: float | None = None
    value_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    shared: int = 0


def compare(
    measures: Sequence[Measure],
    rows_a: Sequence[Row],
    rows_b: Sequence[Row],
    *,
    summarize: Callable[[Values], Values] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Difference]:
    """Every declared measure of run a minus that of run b; p-values corrected over the measures compared (Holm).

    Only clusters with a score in both runs are used, so values may differ from those of the whole runs.
    """
    names = [measure.name for measure in measures]
    shared = {label for label, _ in rows_a} & {label for label, _ in rows_b}
    found_a, found_b = (
        resample(measures, sort_into_clusters(rows, names, among=shared), summarize=summarize, draws=draws, seed=seed)
        for rows in (rows_a, rows_b)
    )
    differences = {name: _difference(found_a.get(name), found_b.get(name), len(shared)) for name in names}
    compared = {name: found.p for name, found in differences.items() if found.p is not None}
    corrected = dict(zip(compared, holm(list(compared.values())), strict=True))
    return {name: msgspec.structs.replace(found, p_holm=corrected.get(name)) for name, found in differences.items()}


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, step down; in the order given, at most 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def shared_ranks(
    runs: Mapping[str, Sequence[Row]],
    measures: Sequence[Measure],
    name: str,
    *,
    summarize: Callable[[Values], Values] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, int | None]:
    """The rank of every run by one measure, best value first: 1 + the number of runs that are clearly better.

    Clearly: the paired difference over the clusters that the two share is significant at 5 % after Holm's correction
    over all pairs. Runs that cannot be told apart thus share a rank; a run without a value comes last, with rank None.
    """
    higher_is_better = next(measure.higher_is_better for measure in measures if measure.name == name)
    labels = {run: frozenset(label for label, _ in rows) for run, rows in runs.items()}
    known: dict[tuple[str, frozenset[str]], Resampled | None] = {}

    def values(run: str, among: frozenset[str]) -> Resampled | None:
        if (run, among) not in known:
            scores = sort_into_clusters(runs[run], [measure.name for measure in measures], among=among)
            found = resample(measures, scores, summarize=summarize, draws=draws, seed=seed)
            known[run, among] = found.get(name)
        return known[run, among]

    def gain(run: str) -> float:
        found = values(run, labels[run])
        if found is None or not math.isfinite(found.point):
            return -math.inf
        return found.point if higher_is_better else -found.point

    differences = {}
    for a, b in combinations(runs, 2):
        among = labels[a] & labels[b]
        differences[a, b] = _difference(values(a, among), values(b, among), len(among))
    tested = {pair: found for pair, found in differences.items() if found.p is not None}
    corrected = holm([found.p for found in tested.values() if found.p is not None])
    beaten = dict.fromkeys(runs, 0)
    for ((a, b), found), p in zip(tested.items(), corrected, strict=True):
        if p < LEVEL and found.difference:
            beaten[b if (found.difference > 0) == higher_is_better else a] += 1
    ordered = sorted(runs, key=gain, reverse=True)
    return {run: None if gain(run) == -math.inf else 1 + beaten[run] for run in ordered}


def _difference(a: Resampled | None, b: Resampled | None, shared: int) -> Difference:
    value_a, value_b = (None if run is None or not math.isfinite(run.point) else run.point for run in (a, b))
    if a is None or b is None or value_a is None or value_b is None:
        return Difference(value_a=value_a, value_b=value_b, shared=shared)
    difference = a.minus(b)
    low, high = interval(difference) or (None, None)
    return Difference(
        value_a=value_a,
        value_b=value_b,
        difference=difference.point,
        low=low,
        high=high,
        p=p_value(difference),
        shared=shared,
    )
