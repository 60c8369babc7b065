"""Ranks of runs by their headline measure, from the same paired comparisons that are shown (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from loupe.stats.bootstrap import DRAWS, resample
from loupe.stats.clusters import sort_into_clusters
from loupe.stats.comparison import (
    Difference,
    Side,
    Sides,
    compare_sides,
    decided,
    holm,
    is_clear,
    rows_of,
    same_test,
    scored_samples,
    side,
)
from loupe.types import Measure, SampleScores, Values

#: One run minus another one.
Pair: TypeAlias = tuple[str, str]
#: Then the smallest p-value that exchanges can give is 0.025 after correction.
_DRAWS_PER_PAIR = 40


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

    # Holm's correction multiplies the smallest p-value by the number of pairs: without more exchanges than usual no
    # difference among many runs could be called clear.
    draws = max(draws, _DRAWS_PER_PAIR * math.comb(len(runs), 2))
    gains = {run: -math.inf if run in unranked else gain(samples) for run, samples in runs.items()}
    pairs = _corrected_over_pairs(_compare_all(runs, measures, headline, summarize, draws, seed), headline)
    beaten = dict.fromkeys(runs, 0)
    for (later, earlier), found in pairs.items():
        one = found[headline]
        if later in unranked or earlier in unranked:
            continue
        if one.difference is not None and is_clear(one):
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
) -> dict[Pair, Sides]:
    """Every later run minus every earlier one; a run is sorted once for all that share the same samples with it."""
    scored = {run: scored_samples(samples) for run, samples in runs.items()}

    @lru_cache(maxsize=2 * len(runs))
    def side_of(run: str, shared: frozenset[str]) -> Side:
        return side(measures, runs[run], shared, summarize=summarize)

    def compared(a: str, b: str) -> Sides:
        shared = scored[a] & scored[b]
        first, second = side_of(a, shared), side_of(b, shared)
        return compare_sides(measures, first, second, headline=headline, summarize=summarize, draws=draws, seed=seed)

    return {(later, earlier): compared(later, earlier) for earlier, later in combinations(runs, 2)}


def _corrected_over_pairs(pairs: dict[Pair, Sides], headline: str) -> dict[Pair, dict[str, Difference]]:
    """The headline is asked of every pair, so its p-values are corrected over the pairs."""
    p_values = {pair: sides.headline.p_value() for pair, sides in pairs.items() if sides.headline is not None}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return {pair: _decided(sides, headline, corrected.get(pair)) for pair, sides in pairs.items()}


def _decided(sides: Sides, headline: str, p_holm: float | None) -> dict[str, Difference]:
    """The same with this corrected p-value of the headline, and of measures that are the same figures."""
    found = sides.measures
    if sides.headline is None or p_holm is None:
        return found
    same = {name for name, one in found.items() if same_test(one, found[headline])}
    return found | {name: decided(found[name], sides.headline, p_holm) for name in same}
