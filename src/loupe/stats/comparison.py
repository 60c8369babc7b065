"""Paired comparison of runs: the same clusters are drawn for both, so that hard pages are hard for both.

One method decides and shows: p-value, interval and verdict come from the same exchanges of the runs (permutation.py,
contrast.py), corrected with the method of S. Holm, Scandinavian Journal of Statistics 6 (1979). docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import Resampled, resample
from loupe.stats.clusters import Clustered, Row
from loupe.stats.contrast import Contrast, IntervalKind
from loupe.stats.permutation import contrasts
from loupe.stats.power import Pilot, unseen_share
from loupe.stats.scored_run import ScoredRun
from loupe.types import SampleScores

#: With fewer shared clusters no exchange of scores is rare enough to be called significant: 2 / 2⁵ is above 5 %.
FEWEST = 6
#: Corrected p-values from here on are no difference.
LEVEL = 0.05


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two runs over the samples that both have, of `shared` clusters: a minus b.

    None if it was not computed in one of the runs; interval and p-values are None for fewer clusters than any test
    needs, too. The intervals of all questions that are asked at once are Bonferroni's and hold together with 95 %, ends
    at 0 aside: 0 lies outside exactly if `p_holm` is below `LEVEL`, and Holm's p may be where Bonferroni's is not. Such
    an end is moved to 0; with 95 %, none of those is wrong. `worst_low` and `worst_high` are set for the headline: the
    difference lies between them with 95 %, whatever documents that were not read are like. `interval` says which kind
    of interval low and high are, or why there is none, and `questions` for how many questions at once they are.
    `detectable` is the smallest difference that such clusters show in four of five cases, and `needed` how many of them
    show the one found in four of five cases (None: it is 0, or over a million). The number that shows the true one lies
    between `needed_least` and `needed_most` with 95 % (None: no largest number is known). Where all clusters differ
    alike, there is no spread to tell these from; `unseen` is then the share of clusters that could differ otherwise.
    All of them are None for fewer clusters than any test needs. They are `rough` where clusters are very unequal.
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
    needed_least: int | None = None
    needed_most: int | None = None
    unseen: float | None = None
    rough: bool = False
    worst_low: float | None = None
    worst_high: float | None = None
    interval: IntervalKind = "none: not computed in both runs"
    questions: int = 1

    def reversed(self) -> Difference:
        """The same as b minus a."""
        turned = {
            name: None if (end := getattr(self, name)) is None else -end
            for name in ("difference", "low", "high", "worst_low", "worst_high")
        }
        return msgspec.structs.replace(
            self,
            value_a=self.value_b,
            value_b=self.value_a,
            difference=turned["difference"],
            low=turned["high"],
            high=turned["low"],
            worst_low=turned["worst_high"],
            worst_high=turned["worst_low"],
        )


def compare(
    analysis: Analysis, samples_a: Iterable[SampleScores], samples_b: Iterable[SampleScores]
) -> dict[str, Difference]:
    """Every measure of run a minus that of run b; p-values corrected over the measures compared (Holm).

    The headline is a question of its own, asked beforehand: it is left as it is, and not counted among the others.
    Only samples with a score in both runs are used, so values may differ from those of the whole runs.
    """
    a, b = ScoredRun(samples_a), ScoredRun(samples_b)
    shared = frozenset(a.scored & b.scored)
    return compare_sides(analysis, side(analysis, a, shared), side(analysis, b, shared)).measures


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


def side(analysis: Analysis, run: ScoredRun, shared: frozenset[str]) -> Side:
    """The half of a comparison that one run makes, for `compare_sides`.

    A document of which the other run has read half is compared by that half.
    """
    scores = run.clustered(analysis.names, shared)
    return Side(scores, resample(analysis.without_draws(), scores))


def compare_sides(analysis: Analysis, a: Side, b: Side) -> Sides:
    """As `compare`, of two runs over the same samples."""
    clusters = len(a.scores.labels)
    found: dict[str, Contrast] = {}
    if clusters >= FEWEST:
        found = contrasts(analysis, a.scores, b.scores)
    differences = {
        name: _difference(a.measures.get(name), b.measures.get(name), found.get(name)) for name in analysis.names
    }
    corrected = _corrected(differences, analysis.headline)
    compared = {
        name: msgspec.structs.replace(
            decided(one, found[name], *corrected[name]) if name in corrected else one, shared=clusters
        )
        for name, one in differences.items()
    }
    headline = found.get(analysis.headline)
    if headline is not None:
        low, high = headline.bounds(LEVEL) or (None, None)
        asked = compared[analysis.headline]
        compared[analysis.headline] = msgspec.structs.replace(asked, worst_low=low, worst_high=high)
    return Sides(compared, headline)


def decided(found: Difference, contrast: Contrast, p_holm: float, questions: int) -> Difference:
    """The difference with this p-value, corrected for so many questions, and the interval that holds among them all."""
    level = LEVEL / questions
    low, high = contrast.interval(level, clear=p_holm < LEVEL) or (None, None)
    return msgspec.structs.replace(
        found, p_holm=p_holm, low=low, high=high, interval=contrast.kind(level), questions=questions
    )


def is_clear(found: Difference) -> bool:
    """Whether the difference is more than chance, after correction."""
    return found.p_holm is not None and found.p_holm < LEVEL


def clearly_better(found: Difference, *, higher_is_better: bool) -> bool | None:
    """Whether the first of the two runs is the better one, beyond chance; None where neither is."""
    if found.difference is None or not is_clear(found):
        return None
    return (found.difference > 0) == higher_is_better


def same_test(one: Difference, other: Difference) -> bool:
    """Whether two measures are the same figures under two names: an overall that only one measure is behind."""
    return (one.value_a, one.value_b, one.p) == (other.value_a, other.value_b, other.p)


def _corrected(differences: Mapping[str, Difference], headline: str) -> dict[str, tuple[float, int]]:
    """p-values after Holm's correction, for how many questions; measures that are the same test count once."""
    tests: dict[tuple[float | None, float | None, float], list[str]] = {}
    for name, found in differences.items():
        if found.p is not None:
            tests.setdefault((found.value_a, found.value_b, found.p), []).append(name)
    alone = {key for key, names in tests.items() if headline in names}
    family = [key for key in tests if key not in alone]
    corrected = dict(zip(family, holm([key[2] for key in family]), strict=True))
    return {
        name: (key[2], 1) if key in alone else (corrected[key], len(family))
        for key, names in tests.items()
        for name in names
    }


def rows_of(samples: Iterable[SampleScores]) -> Iterator[Row]:
    """Every score with its cluster: the sample's group, or the sample itself where it has none."""
    return ((item.group or item.sample, score) for item in samples for score in item.scores)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, step down; in the order given, at most 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[index]))
        corrected[index] = largest
    return corrected


def _difference(a: Resampled | None, b: Resampled | None, contrast: Contrast | None) -> Difference:
    value_a, value_b = (None if run is None or not math.isfinite(run.point) else run.point for run in (a, b))
    if a is None or b is None or value_a is None or value_b is None:
        return Difference(value_a=value_a, value_b=value_b)
    difference = value_a - value_b
    clusters = min(a.clusters, b.clusters)
    testable = contrast if clusters >= FEWEST else None
    pilot = None if testable is None else Pilot.of(testable, clusters)
    least, most = (None, None) if pilot is None or testable is None else pilot.needed_between(testable.interval(LEVEL))
    return Difference(
        value_a=value_a,
        value_b=value_b,
        difference=difference,
        p=None if contrast is None else contrast.p_value(),
        detectable=None if pilot is None else pilot.detectable(),
        needed=None if pilot is None else pilot.needed(),
        needed_least=least,
        needed_most=most,
        unseen=unseen_share(clusters) if testable is not None and testable.error is None else None,
        rough=pilot is not None and pilot.rough,
        interval="none: too few clusters",
    )
