"""Ranks of runs by their headline measure, from the same paired comparisons that are shown (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import resample
from loupe.stats.comparison import (
    Difference,
    Side,
    Sides,
    clearly_better,
    compare_sides,
    decided,
    holm,
    same_test,
    side,
)
from loupe.stats.scored_run import ScoredRun
from loupe.types import SampleScores

#: One run minus another one.
Pair: TypeAlias = tuple[str, str]
#: Then the smallest p-value that exchanges can give is 0.025 after correction.
_DRAWS_PER_PAIR = 40


@dataclass(frozen=True, slots=True)
class Standings:
    """Every run's rank, best first, and the comparison of each pair: the later run minus the earlier one.

    A rank is 1 + the number of runs that are clearly better: the paired difference of the headline is significant at
    5 % after Holm's correction over all pairs, which is the `p_holm` of the headline in `pairs`. Runs that cannot be
    told apart share a rank, and stand by their values. Last come those with None: without a value, without an answer
    (`failed`), or over too few of the samples of the leader, the best run that can be tested. Tables keep the order of
    `ranks`, and its first run is the one that others are compared with where nobody names one. `untold`: there are
    values, but no pair of them can be tested, and all ranks are None.
    """

    ranks: dict[str, int | None]
    pairs: dict[Pair, dict[str, Difference]]
    untold: bool
    failed: frozenset[str] = frozenset()

    def minus(self, one: str, other: str) -> dict[str, Difference]:
        """One run minus another one, whichever came first."""
        if (one, other) in self.pairs:
            return self.pairs[one, other]
        return {name: found.reversed() for name, found in self.pairs.get((other, one), {}).items()}


def standings(
    analysis: Analysis, runs: Mapping[str, Iterable[SampleScores]], *, unranked: Collection[str] = ()
) -> Standings:
    """Compare every two runs over the samples that they share, and rank all by the headline.

    `unranked` runs have no rank and take none: their headline is not that of the others. The samples of each run are
    gone through once.
    """
    headline = analysis.headline
    measure = next(measure for measure in analysis.measures if measure.name == headline)
    scored = {run: ScoredRun(samples) for run, samples in runs.items()}

    def gain(run: ScoredRun) -> float:
        found = resample(analysis.without_draws(), run.clustered(analysis.names)).get(headline)
        if found is None or not math.isfinite(found.point):
            return -math.inf
        return measure.merit(found.point)

    # Holm's correction multiplies the smallest p-value by the number of pairs: without more exchanges than usual no
    # difference among many runs could be called clear.
    draws = max(analysis.draws, _DRAWS_PER_PAIR * math.comb(len(runs), 2))
    gains = {run: -math.inf if run in unranked else gain(found) for run, found in scored.items()}
    pairs = _corrected_over_pairs(_compare_all(replace(analysis, draws=draws), scored), headline)
    failed = frozenset(run for run, found in scored.items() if found.all_failed)
    by_value = sorted(runs, key=gains.__getitem__, reverse=True)
    valued = [run for run in by_value if math.isfinite(gains[run]) and run not in failed]
    ranked = _rankable(valued, {frozenset(pair) for pair, found in pairs.items() if found[headline].p is not None})
    beaten = dict.fromkeys(ranked, 0)
    for (later, earlier), found in pairs.items():
        better = clearly_better(found[headline], higher_is_better=measure.higher_is_better)
        if later in beaten and earlier in beaten and better is not None:
            beaten[earlier if better else later] += 1
    ranks = {run: 1 + beaten[run] for run in sorted(ranked, key=beaten.__getitem__)}
    others = [run for run in by_value if run not in beaten]
    return Standings(ranks | dict.fromkeys(others), pairs, untold=bool(valued) and not ranked, failed=failed)


def _rankable(valued: Sequence[str], tested: Collection[frozenset[str]]) -> list[str]:
    """Of runs by value those that can be told from the leader, and the leader itself."""
    if len(valued) < 2:
        return list(valued)
    leader = next((run for run in valued if any(frozenset((run, other)) in tested for other in valued)), None)
    return [run for run in valued if run == leader or frozenset((run, leader)) in tested]


def _compare_all(analysis: Analysis, runs: Mapping[str, ScoredRun]) -> dict[Pair, Sides]:
    """Every later run minus every earlier one; a run is sorted once for all that share the same samples with it."""

    @lru_cache(maxsize=2 * len(runs))
    def side_of(run: str, shared: frozenset[str]) -> Side:
        return side(analysis, runs[run], shared)

    def compared(a: str, b: str) -> Sides:
        shared = frozenset(runs[a].scored & runs[b].scored)
        return compare_sides(analysis, side_of(a, shared), side_of(b, shared))

    return {(later, earlier): compared(later, earlier) for earlier, later in combinations(runs, 2)}


def _corrected_over_pairs(pairs: dict[Pair, Sides], headline: str) -> dict[Pair, dict[str, Difference]]:
    """The headline is asked of every pair, so its p-values are corrected over the pairs."""
    p_values = {pair: sides.headline.p_value() for pair, sides in pairs.items() if sides.headline is not None}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return {pair: _decided(sides, headline, corrected.get(pair), len(corrected)) for pair, sides in pairs.items()}


def _decided(sides: Sides, headline: str, p_holm: float | None, questions: int) -> dict[str, Difference]:
    """The same with this corrected p-value of the headline, and of measures that are the same figures."""
    found = sides.measures
    if sides.headline is None or p_holm is None:
        return found
    same = {name for name, one in found.items() if same_test(one, found[headline])}
    return found | {name: decided(found[name], sides.headline, p_holm, questions) for name in same}
