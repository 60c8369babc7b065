"""Values of which few pages carry the error, and other seeds: tables for perf/coverage.py, and what these share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import interval, resample
from loupe.stats.clusters import Row, sort_into_clusters
from loupe.stats.estimates import estimate, interval_of
from loupe.types import Measure, Score

Floats: TypeAlias = NDArray[np.float64]
Shape: TypeAlias = tuple[int, int]
#: Both counts of every cluster (rows) in every repeat (columns), and the true value, or one for every repeat.
Drawn: TypeAlias = tuple[Floats, Floats, float | Floats]
Draw: TypeAlias = Callable[[np.random.Generator, Shape], Drawn]
SEED = 20240607


@dataclass(frozen=True)
class Simulated:
    """A benchmark: how the counts of its clusters come about. A stress test goes beyond what the method can do."""

    title: str
    draw: Draw
    stress: bool = False


def to_rows(first: Floats, second: Floats) -> list[Row]:
    """Column r of the counts becomes measure r; rows are clusters."""
    counts = np.stack([first, second], axis=-1).tolist()
    return [
        (str(cluster), Score(measure=str(repeat), counts=tuple(pair)))
        for cluster, pairs in enumerate(counts)
        for repeat, pair in enumerate(pairs)
    ]


def measures(number: int) -> list[Measure]:
    """One measure per repeat."""
    return [Measure(name=str(index)) for index in range(number)]


def perfect(loops: float) -> Draw:
    """Edits and characters of pages of which 60 % are perfect and long ones are worse; some are lost in a loop."""

    def draw(chance: np.random.Generator, shape: Shape) -> Drawn:
        length = np.round(chance.lognormal(7, 0.8, shape)) + 1
        rate = np.where(chance.random(shape) < 0.6, 0, chance.gamma(1, 0.02, shape) * length / 1100)
        edits = chance.binomial(length.astype(int), np.minimum(rate, 1)).astype(float)
        truth = MEAN_RATE + loops * (1 - MEAN_RATE)
        return np.where(chance.random(shape) < loops, length, edits), length, truth

    return draw


#: The CER of `perfect` pages without loops, from 20 million pages.
MEAN_RATE = 0.02072
#: Few pages carry most of the error.
SKEWED = (
    Simulated("CER, 60 % of pages perfect, long ones worse, 3 % loop", perfect(0.03)),
    Simulated("CER, 60 % of pages perfect, long ones worse", perfect(0.0)),
)
#: Of these, higher is better.
SHARES = ("pass rate", "edit similarity", "near-perfect")


def asked(benchmark: Simulated, repeats: int) -> list[Measure]:
    """One measure per repeat, with the direction of the benchmark."""
    better = benchmark.title.startswith(SHARES)
    return [replace(measure, higher_is_better=better) for measure in measures(repeats)]


def noted(benchmark: Simulated, clusters: int, repeats: int) -> str:
    """Coverage before and now, how many intervals are noted, coverage of these and the others, and by what they grow.

    Before, no unread page was allowed for. The growth is the median of noted intervals, then the mean of all.
    """
    chance = np.random.default_rng([SEED, clusters, 7])
    first, second, truth = benchmark.draw(chance, (clusters, repeats))
    analysis = Analysis(asked(benchmark, repeats))
    scores = sort_into_clusters(to_rows(first, second), analysis.names)
    resampled, before, growth = resample(analysis, scores), [], []
    held: dict[bool, list[bool]] = {True: [], False: []}
    grown: list[float] = []
    for measure, true in zip(analysis.measures, np.broadcast_to(truth, repeats).tolist(), strict=True):
        ends, few = interval_of(measure, resampled[measure.name], scores.measures[measure.name])
        if ends is None:
            continue
        plain = (interval(resampled[measure.name]) if few else None) or ends
        held[few].append(ends[0] - 1e-12 <= true <= ends[1] + 1e-12)
        before.append(plain[0] - 1e-12 <= true <= plain[1] + 1e-12)
        growth.append((ends[1] - ends[0]) / (plain[1] - plain[0]))
        grown += growth[-1:] if few else []
    share, then = len(held[True]) / len(before), 100 * float(np.mean(before))
    kinds = (f"{100 * float(np.mean(each)):.0f} %" if len(each) >= 20 else "–" for each in held.values())
    times = f"{float(np.median(grown)):.1f}, {float(np.mean(growth)):.2f}" if len(grown) >= 20 else "–"
    now = 100 * float(np.mean(held[True] + held[False]))
    return f"{then:.1f} → {now:.1f} %; {100 * share:.1f} %: {', '.join(kinds)}; × {times}"


def print_noted(benchmarks: Sequence[Simulated], repeats: int) -> None:
    """The table of intervals with and without the note."""
    sizes = (5, 12, 30, 100, 300)
    error = 100 * (0.25 / repeats) ** 0.5
    print(
        f"\n{repeats} repeats (standard error at most {error:.1f} points). Coverage before → now; noted: coverage with,"
    )
    print("with, without; × growth of the noted (median), of all (mean)\n")
    print("| simulated benchmark | " + " | ".join(f"n = {clusters}" for clusters in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for benchmark in (*SKEWED, *benchmarks):
        cells = [noted(benchmark, clusters, repeats) for clusters in sizes]
        print(f"| {benchmark.title} | " + " | ".join(cells) + " |", flush=True)


def moved(benchmark: Simulated, clusters: int, samples: int = 8, seeds: int = 8) -> list[float]:
    """By how much of the width another seed moves an end, for each of some samples: the worse end."""
    chance = np.random.default_rng([SEED, clusters, 8])
    rows = to_rows(*benchmark.draw(chance, (clusters, samples))[:2])
    found = [estimate(Analysis(asked(benchmark, samples), seed=seed), rows) for seed in range(seeds)]
    moves = []
    for name in found[0]:
        ends = [(each[name].low, each[name].high) for each in found]
        low, high = np.array([end for end in ends if end[0] is not None and end[1] is not None], float).reshape(-1, 2).T
        if low.size:
            moves.append(float(max(np.ptp(low), np.ptp(high)) / np.mean(high - low)))
    return moves


def print_seeds(benchmarks: Sequence[Simulated]) -> None:
    """How often another seed moves an end of an interval by more than 1 % and 5 % of its width."""
    sizes = (5, 9, 12, 20, 30, 100, 300)
    moves = np.array([each for one in (*SKEWED, *benchmarks) for n in sizes for each in moved(one, n)])
    much, most = (int(np.count_nonzero(moves > share)) for share in (0.01, 0.05))
    print(f"\nanother seed: {much} of {moves.size} moved by more than 1 % of the width, {most} by more than 5 %,")
    print(f"at most {100 * float(moves.max()):.1f} %")
