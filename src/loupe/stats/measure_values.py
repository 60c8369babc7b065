"""Compute the values of a measure from counts, and what these values and their clusters can be."""

from __future__ import annotations

import math

import numpy as np

from loupe.stats.clusters import Floats, MeasureRows
from loupe.types import Measure


def value_of(measure: Measure, sums: Floats) -> Floats:
    """A measure of sums of counts, shape (..., k) → (...)."""
    with np.errstate(all="ignore"):
        if measure.value is not None:
            return np.asarray(measure.value(sums), float)
        if sums.shape[-1] < 2:
            raise ValueError(f"measure {measure.name!r} needs two counts (or a `value` function) to be a ratio")
        ratio: Floats = sums[..., 0] / sums[..., 1]
        return ratio


def pooled_value(measure: Measure, rows: MeasureRows, counts: Floats) -> float:
    """A pooled measure of the rows, each as often as its cluster was drawn; nan without any row."""
    if measure.value is None:
        raise ValueError(f"measure {measure.name!r} is pooled and needs a `value` function")
    drawn = np.repeat(rows.counts, counts[rows.cluster].astype(np.intp), axis=0)
    return float(measure.value(drawn)) if len(drawn) else math.nan


def cluster_values(measure: Measure, rows: MeasureRows) -> Floats:
    """The measure on each cluster that has it, where it can be computed."""
    values = value_of(measure, rows.sums(int(rows.cluster[-1]) + 1)[np.unique(rows.cluster)])
    return values[np.isfinite(values)]


def bounds_of(measure: Measure, seen: Floats | None = None) -> tuple[float, float]:
    """What no value of a measure can lie beyond, by what it is, and by its values on all clusters, where it is counted.

    An error rate may pass 1, but nothing says so of one that stays below it everywhere.
    """
    if measure.bounded or (measure.unit != "number" and measure.higher_is_better):
        return 0.0, 1.0
    if measure.unit == "number" or seen is None or not seen.size:
        return -math.inf, math.inf
    return (0.0 if seen.min() >= 0 else -math.inf), (1.0 if seen.max() <= 1 else math.inf)


def possible_difference(measure: Measure, *runs: MeasureRows) -> float:
    """Return by how much a value can differ on one cluster: the scale of the measure, else the range seen in the runs.

    nan if nothing was seen.
    """
    if measure.unit == "count":
        return float(max(len(rows.counts) for rows in runs))
    if measure.bounded or (measure.unit == "fraction" and measure.higher_is_better):
        return 1.0
    seen = np.zeros(0) if measure.pooled else np.concatenate([cluster_values(measure, rows) for rows in runs])
    if measure.unit == "fraction":
        return max(1.0, float(seen.max(initial=0.0)))
    return float(np.ptp(seen)) if seen.size else math.nan


def sizes_of(measure: Measure, rows: MeasureRows, clusters: int) -> Floats:
    """Return how much each of all clusters counts in a measure: by the denominator of a ratio, else by its rows."""
    if measure.pooled or rows.counts.shape[1] != 2:
        return np.bincount(rows.cluster, minlength=clusters).astype(np.float64)
    sizes: Floats = rows.sums(clusters)[:, 1]
    return sizes


def shares_of(sizes: Floats) -> Floats:
    """Return sizes as shares of their sum; equal ones if none is above 0."""
    sizes = np.maximum(sizes, 0.0)
    total = float(sizes.sum())
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
