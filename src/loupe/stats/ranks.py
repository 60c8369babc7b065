"""Ranks of runs by their headline measure, from the same paired comparisons that are shown (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import msgspec

from loupe.stats.bootstrap import DRAWS, resample
from loupe.stats.clusters import sort_into_clusters
from loupe.stats.comparison import (
    LEVEL,
    Difference,
    Drawn,
    compare_drawn,
    draw,
    holm,
    rows_of,
    same_test,
    scored_samples,
)
from loupe.types import Measure, SampleScores, Values

#: One run minus another one.
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Standings:
    """Every run's rank, best value first, and the comparison of each pair: the later run minus the earlier one.

    A rank is 1 + the number of runs that are clearly better: the paired difference of the headline is significant at
    5 % after Holm's correction over all pairs, which is the `p_holm` of the headline in `pairs`. Runs that cannot be
    told apart share a rank; a run without a value comes last, with None. `untold`: there are values, but no pair of
    them can be tested, and all ranks are None.
    """

    ranks: dict[str, int | None]
    pairs: dict[Pair, dict[str, Difference]]
    untold: bool


def standings(
    runs: Mapping[str, Sequence[SampleScores]],
    measures: Sequence[Measure],
    headline: str,
    *,
    summarize: Callable[[Values], Values] | None = None,
    unranked: Collection[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
) -> Standings:
    """Compare every two runs over the samples that they share, and rank all by the headline.

    `unranked` runs have no rank and take none: their headline is not that of the others.
    """
    higher_is_better = next(measure.higher_is_better for measure in measures if measure.name == headline)
    names = [measure.name for measure in measures]

    def gain(samples: Sequence[SampleScores]) -> float:
        scores = sort_into_clusters(rows_of(samples), names)
        found = resample(measures, scores, summarize=summarize, draws=0).get(headline)
        if found is None or not math.isfinite(found.point):
            return -math.inf
        return found.point if higher_is_better else -found.point

    gains = {run: -math.inf if run in unranked else gain(samples) for run, samples in runs.items()}
    pairs = _corrected_over_pairs(_compare_all(runs, measures, headline, summarize, draws, seed), headline)
    beaten = dict.fromkeys(runs, 0)
    for (later, earlier), found in pairs.items():
        one = found[headline]
        if later in unranked or earlier in unranked:
            continue
        if one.difference is not None and one.p_holm is not None and one.p_holm < LEVEL:
            beaten[earlier if (one.difference > 0) == higher_is_better else later] += 1
    tested = any(found[headline].p is not None for found in pairs.values())
    ranked = tested or sum(math.isfinite(value) for value in gains.values()) < 2
    ordered = sorted(runs, key=gains.__getitem__, reverse=True)
    ranks = {run: 1 + beaten[run] if ranked and math.isfinite(gains[run]) else None for run in ordered}
    return Standings(ranks, pairs, untold=not ranked)


def _compare_all(
    runs: Mapping[str, Sequence[SampleScores]],
    measures: Sequence[Measure],
    headline: str,
    summarize: Callable[[Values], Values] | None,
    draws: int,
    seed: int,
) -> dict[Pair, dict[str, Difference]]:
    """Every later run minus every earlier one; a run is drawn once for all that share the same samples with it."""
    scored = {run: scored_samples(samples) for run, samples in runs.items()}

    @lru_cache(maxsize=2 * len(runs))
    def drawn(run: str, shared: frozenset[str]) -> Drawn:
        return draw(measures, runs[run], shared, summarize=summarize, draws=draws, seed=seed)

    def difference(a: str, b: str) -> dict[str, Difference]:
        shared = scored[a] & scored[b]
        first, second = drawn(a, shared), drawn(b, shared)
        return compare_drawn(measures, first, second, headline=headline, summarize=summarize, draws=draws, seed=seed)

    return {(later, earlier): difference(later, earlier) for earlier, later in combinations(runs, 2)}


def _corrected_over_pairs(pairs: dict[Pair, dict[str, Difference]], headline: str) -> dict[Pair, dict[str, Difference]]:
    """The headline is asked of every pair, so its p-values are corrected over the pairs."""
    p_values: dict[Pair, float] = {}
    for pair, found in pairs.items():
        if (p := found[headline].p) is not None:
            p_values[pair] = p
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return pairs | {pair: _with_p_holm(pairs[pair], headline, p) for pair, p in corrected.items()}


def _with_p_holm(found: dict[str, Difference], headline: str, p_holm: float) -> dict[str, Difference]:
    """The same with this corrected p-value of the headline, and of measures that are the same figures."""
    same = {name for name, one in found.items() if same_test(one, found[headline])}
    return found | {name: msgspec.structs.replace(found[name], p_holm=p_holm) for name in same}
