"""Paired comparison of runs: the same clusters are drawn for both, so that hard pages are hard for both.

One method decides and shows: p-value, interval and verdict come from the same exchanges of the runs (permutation.py,
contrast.py), corrected with the method of S. Holm, Scandinavian Journal of Statistics 6 (1979). docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from loupe.stats.bootstrap import DRAWS, Resampled, resample
from loupe.stats.clusters import Clustered, Row, sort_into_clusters
from loupe.stats.contrast import Contrast
from loupe.stats.permutation import contrasts
from loupe.stats.power import clusters_needed, detectable_difference, unseen_share
from loupe.types import Measure, SampleScores, Values

#: With fewer shared clusters no exchange of scores is rare enough to be called significant: 2 / 2⁵ is above 5 %.
FEWEST = 6
#: Corrected p-values from here on are no difference.
LEVEL = 0.05


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two runs over the samples that both have, of `shared` clusters: a minus b.

    None where it was not computed in one of the runs; interval and p-values are None for fewer clusters than any test
    needs, too, and the interval where all clusters differ alike. The interval is as strict as `p_holm`: 95 %, or wider
    where several questions are asked at once; 0 lies outside of it exactly where `p_holm` is below `LEVEL`.
    `detectable` is the smallest difference that these clusters show in four of five cases, `needed` how many clusters
    would show the one found (None: it is 0, or over a million). Where all clusters differ alike, there is no spread to
    tell these from; `unseen` is then the share of clusters that could differ otherwise. All three are None for fewer
    clusters than any test needs.
    """

    value_a: float | None = None
    value_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    shared: int = 0
    detectable: float | None = None
    needed: int | None = None
    unseen: float | None = None


def compare(
    measures: Sequence[Measure],
    samples_a: Sequence[SampleScores],
    samples_b: Sequence[SampleScores],
    *,
    headline: str = "",
    summarize: Callable[[Values], Values] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Difference]:
    """Every declared measure of run a minus that of run b; p-values corrected over the measures compared (Holm).

    The `headline` is a question of its own, asked beforehand: it is left as it is, and not counted among the others.
    Only samples with a score in both runs are used, so values may differ from those of the whole runs.
    """
    shared = scored_samples(samples_a) & scored_samples(samples_b)
    a, b = (side(measures, samples, shared, summarize=summarize) for samples in (samples_a, samples_b))
    return compare_sides(measures, a, b, headline=headline, summarize=summarize, draws=draws, seed=seed).measures


@dataclass(frozen=True, slots=True)
class Side:
    """A run over the samples that another one has, too: its scores in clusters, and its measures."""

    scores: Clustered
    measures: dict[str, Resampled]


@dataclass(frozen=True, slots=True)
class Sides:
    """Two runs compared, and the contrast of the headline, with which it can be asked again more strictly."""

    measures: dict[str, Difference]
    headline: Contrast | None


def scored_samples(samples: Iterable[SampleScores]) -> frozenset[str]:
    """The samples of a run that have scores."""
    return frozenset(item.sample for item in samples if item.scores)


def side(
    measures: Sequence[Measure],
    samples: Iterable[SampleScores],
    shared: frozenset[str],
    *,
    summarize: Callable[[Values], Values] | None,
) -> Side:
    """The half of a comparison that one run makes, for `compare_sides`.

    A document of which the other run has read half is compared by that half.
    """
    rows = rows_of(item for item in samples if item.sample in shared)
    scores = sort_into_clusters(rows, [measure.name for measure in measures])
    return Side(scores, resample(measures, scores, summarize=summarize, draws=0))


def compare_sides(
    measures: Sequence[Measure],
    a: Side,
    b: Side,
    *,
    headline: str,
    summarize: Callable[[Values], Values] | None,
    draws: int,
    seed: int,
) -> Sides:
    """As `compare`, of two runs over the same samples."""
    clusters = len(a.scores.labels)
    found: dict[str, Contrast] = {}
    if clusters >= FEWEST:
        found = contrasts(measures, a.scores, b.scores, summarize=summarize, draws=draws, seed=seed)
    differences = {
        measure.name: _difference(a.measures.get(measure.name), b.measures.get(measure.name), found.get(measure.name))
        for measure in measures
    }
    corrected = _corrected(differences, headline)
    return Sides(
        {
            name: msgspec.structs.replace(
                one if (p_holm := corrected.get(name)) is None else decided(one, found[name], p_holm), shared=clusters
            )
            for name, one in differences.items()
        },
        found.get(headline),
    )


def decided(found: Difference, contrast: Contrast, p_holm: float) -> Difference:
    """The difference with this corrected p-value, and the interval that says the same."""
    low, high = contrast.interval(LEVEL * contrast.p_value() / p_holm) or (None, None)
    return msgspec.structs.replace(found, p_holm=p_holm, low=low, high=high)


def is_clear(found: Difference) -> bool:
    """Whether the difference is more than chance, after correction."""
    return found.p_holm is not None and found.p_holm < LEVEL


def same_test(one: Difference, other: Difference) -> bool:
    """Whether two measures are the same figures under two names: an overall that only one measure is behind."""
    return (one.value_a, one.value_b, one.p) == (other.value_a, other.value_b, other.p)


def _corrected(differences: Mapping[str, Difference], headline: str) -> dict[str, float]:
    """p-values after Holm's correction; measures that are the same test count once."""
    tests: dict[tuple[float | None, float | None, float], list[str]] = {}
    for name, found in differences.items():
        if found.p is not None:
            tests.setdefault((found.value_a, found.value_b, found.p), []).append(name)
    alone = {key for key, names in tests.items() if headline in names}
    family = [key for key in tests if key not in alone]
    values = {key: key[2] for key in alone} | dict(zip(family, holm([key[2] for key in family]), strict=True))
    return {name: values[key] for key, names in tests.items() for name in names}


def rows_of(samples: Iterable[SampleScores]) -> list[Row]:
    """Every score with its cluster: the sample's group, or the sample itself where it has none."""
    return [(item.group or item.sample, score) for item in samples for score in item.scores]


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


def _difference(a: Resampled | None, b: Resampled | None, contrast: Contrast | None) -> Difference:
    value_a, value_b = (None if run is None or not math.isfinite(run.point) else run.point for run in (a, b))
    if a is None or b is None or value_a is None or value_b is None:
        return Difference(value_a=value_a, value_b=value_b)
    difference = value_a - value_b
    clusters = min(a.clusters, b.clusters)
    testable = contrast is not None and clusters >= FEWEST
    error = contrast.error if contrast is not None and testable else None
    return Difference(
        value_a=value_a,
        value_b=value_b,
        difference=difference,
        p=None if contrast is None else contrast.p_value(),
        detectable=None if error is None else detectable_difference(error, clusters),
        needed=None if error is None else clusters_needed(error, clusters, difference),
        unseen=unseen_share(clusters) if testable and error is None else None,
    )
