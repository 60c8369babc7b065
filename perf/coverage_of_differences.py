"""Differences that few documents carry, the gate with a margin, and several pairs at once: for perf/coverage.py.

Every repeat is one call of `compare` or `standings`, and of what `--fail-on-regression --margin` asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.results.comparing.records import Compared
from loupe.results.comparing.regressions import loss
from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare
from loupe.stats.ranks import standings
from loupe.types import Measure, SampleScores, Score

Floats: TypeAlias = NDArray[np.float64]
#: First counts of a run and of its baseline, and the second count of both.
Pair: TypeAlias = tuple[Floats, Floats, Floats]
SEED = 20261127
SIZES = (8, 12, 30, 100)


@dataclass(frozen=True)
class Loss:
    """Two runs, of which the first is worse by `true` on average; `perfect` is the value of what is not lost."""

    title: str
    draw: Callable[[np.random.Generator, int], Pair]
    true: float
    errors: bool = False


def answers(lost: float, won: float) -> Callable[[np.random.Generator, int], Pair]:
    """Right and wrong answers: the shares that the first run alone gets wrong, and right."""

    def draw(chance: np.random.Generator, size: int) -> Pair:
        kind, both = chance.random(size), chance.random(size) < 0.9
        run = np.where(kind < lost, False, np.where(kind < lost + won, True, both))
        base = np.where(kind < lost, True, np.where(kind < lost + won, False, both))
        return run.astype(float), base.astype(float), np.ones(size)

    return draw


def sparse(rate: float, least: float, most: float, noise: float = 0.0) -> Callable[[np.random.Generator, int], Pair]:
    """Equal pages, of which some lose a part between `least` and `most`."""

    def draw(chance: np.random.Generator, size: int) -> Pair:
        lost = (chance.random(size) < rate) * chance.uniform(least, most, size)
        return 0.99 - lost + noise * chance.normal(size=size), np.full(size, 0.99), np.ones(size)

    return draw


def documents(rate: float, *, by_length: bool, spread: float = 0.0) -> Callable[[np.random.Generator, int], Pair]:
    """Documents of which some fail altogether, the long ones more often if asked for: of 1 to 8 pages, or lognormal."""

    def draw(chance: np.random.Generator, size: int) -> Pair:
        pages = chance.lognormal(math.log(4.5), spread, size) if spread else chance.integers(1, 9, size).astype(float)
        failed = chance.random(size) < (rate * pages / 4.5 if by_length else rate)
        return np.where(failed, 0.0, pages * 0.98), pages * 0.98, pages

    return draw


def loops(times: float) -> Callable[[np.random.Generator, int], Pair]:
    """Edits and characters of pages of very different length, 3 % of which end in a loop of so many times the page."""

    def draw(chance: np.random.Generator, size: int) -> Pair:
        length = np.round(chance.lognormal(7, 0.8, size))
        base = chance.binomial(length.astype(int), 0.02).astype(float)
        return np.where(chance.random(size) < 0.03, times * length, base), base, length

    return draw


def scattered(spread: float, true: float) -> Callable[[np.random.Generator, int], Pair]:
    """All pages differ, by normal noise."""

    def draw(chance: np.random.Generator, size: int) -> Pair:
        base = chance.uniform(0.4, 0.6, size)
        return base - true + chance.normal(0, spread, size), base, np.ones(size)

    return draw


SHAPES = (
    Loss("right or wrong: 2 % lost", answers(0.02, 0.0), 0.02),
    Loss("right or wrong: 4 % lost, 2 % won", answers(0.04, 0.02), 0.02),
    Loss("right or wrong: 20 % lost, 10 % won", answers(0.2, 0.1), 0.1),
    Loss("right or wrong: 10 % lost, 10 % won", answers(0.1, 0.1), 0.0),
    Loss("3 % of pages lose 20 to 99 %", sparse(0.03, 0.2, 0.99), 0.03 * 0.595),
    Loss("10 % of pages lose 5 %", sparse(0.1, 0.05, 0.05), 0.005),
    Loss("documents of 1–8 pages, 4 % fail", documents(0.04, by_length=False), 0.04 * 0.98),
    Loss(
        "documents of 1–8 pages, 4 % fail, mostly long ones", documents(0.04, by_length=True), 0.04 * 0.98 * 17 / 13.5
    ),
    Loss("documents of unequal length (σ = 1), 4 % fail", documents(0.04, by_length=False, spread=1.0), 0.04 * 0.98),
    Loss("the same, mostly long ones", documents(0.04, by_length=True, spread=1.0), 0.1689),
    Loss("CER, 3 % of pages loop", loops(1), 0.03 * 0.98, errors=True),
    Loss("CER, 3 % of pages loop, five times the page", loops(5), 0.03 * 4.98, errors=True),
    Loss("all pages differ (normal), 2 points lost", scattered(0.1, 0.02), 0.02),
    Loss("*stress:* 10 % of pages lose 20 to 99 %, noise on the others", sparse(0.1, 0.2, 0.99, 0.002), 0.0595),
)


def samples(first: Floats, second: Floats) -> list[SampleScores]:
    """One sample for each cluster."""
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [
        SampleScores(sample=f"{number}", scores=[Score(measure="score", counts=counts)])
        for number, counts in enumerate(pairs)
    ]


def passes(found: Difference, margin: float, *, errors: bool) -> bool:
    """Whether `--fail-on-regression --margin` lets a run pass."""
    compared = Compared(
        benchmark="simulated",
        version="1",
        headline="score",
        baseline="base",
        units={"score": "fraction"},
        directions={"score": not errors},
        differing={},
        runs=[],
        pairs=[],
    )
    return not loss(compared, "score", found, margin)


def print_sparse(repeats: int) -> None:
    """The table of coverage, and of how often the gate passes a loss that is as large as its margin."""
    error = 100 * (0.025 * 0.975 / repeats) ** 0.5
    print(f"\n{repeats} repeats (standard error at 2.5 %: {error:.1f} points), seed {SEED}\n")
    print("| true loss = margin: coverage (below / above), passes | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for shape in SHAPES:
        cells = []
        for size in SIZES:
            chance = np.random.default_rng([SEED, size])
            analysis = Analysis([Measure(name="score", higher_is_better=not shape.errors)], headline="score")
            truth = shape.true if shape.errors else -shape.true
            below = above = passed = 0
            for _ in range(repeats):
                run, base, second = shape.draw(chance, size)
                found = compare(analysis, samples(run, second), samples(base, second))["score"]
                below += found.high is not None and found.high < truth - 1e-9
                above += found.low is not None and found.low > truth + 1e-9
                passed += passes(found, shape.true, errors=shape.errors)
            shares = [100 * count / repeats for count in (repeats - below - above, below, above, passed)]
            cells.append("{:.1f} % ({:.1f} / {:.1f}), {:.1f} %".format(*shares))
        print(f"| {shape.title} | " + " | ".join(cells) + " |", flush=True)


def print_together(repeats: int) -> None:
    """The table of all pairs of five engines: how often all ten intervals hold, and how often any p (Holm) is low.

    An end at 0 says only that p (Holm) is low; where ends at 0 are left aside, such an interval counts as open up to 0.
    """
    print("\n| five engines, ten pairs | all ten hold, ends at 0 aside | all ten hold | any wrong one called clear |")
    print("|---|---|---|---|")
    analysis = Analysis([Measure(name="score")], headline="score")
    for title, gaps in FIVE.items():
        for size in (12, 30, 100):
            chance = np.random.default_rng([SEED, size, 1])
            counts = np.zeros(3)
            for _ in range(repeats):
                base = chance.uniform(0.3, 0.7, size)
                runs = {
                    f"{number}": samples(base + gap + chance.normal(0, 0.1, size), np.ones(size))
                    for number, gap in enumerate(gaps)
                }
                pairs = standings(analysis, runs).pairs
                found = [(pairs[a, b]["score"], gaps[int(a)] - gaps[int(b)]) for a, b in pairs]
                counts += all(holds(*each, 1e-8) for each in found), all(holds(*each) for each in found), 0
                counts[2] += any(true == 0 and (one.p_holm or 1) < 0.05 for one, true in found)
            shares = counts / repeats
            errors = 100 * np.sqrt(shares * (1 - shares) / repeats)
            cells = [f"{100 * share:.1f} % ± {error:.1f}" for share, error in zip(shares, errors, strict=True)]
            print(f"| {title}, n = {size} | " + " | ".join(cells) + " |", flush=True)


#: How far five engines lie below the first.
FIVE = {
    "equal": (0.0,) * 5,
    "two alike, three worse": (0.0, 0.0, -0.03, -0.05, -0.1),
    "two alike, three far apart": (0.0, 0.0, -0.3, -0.6, -0.9),
}


def holds(found: Difference, true: float, slack: float = 0.0) -> bool:
    """Whether an interval holds the true difference."""
    return found.low is None or found.high is None or found.low - slack <= true <= found.high + slack


def unequal(spread: float, power: float) -> Callable[[np.random.Generator, int, float], Pair]:
    """Documents of very different length, in whose noise length counts with this power (1: documents as a whole)."""

    def draw(chance: np.random.Generator, size: int, true: float) -> Pair:
        pages = np.exp(spread * chance.normal(size=size))
        base = chance.uniform(0.4, 0.6, size)
        return pages * (base - true) + 0.1 * pages**power * chance.normal(size=size), pages * base, pages

    return draw


#: Two engines with a true difference, which adds differing documents where answers are right or wrong.
FORECAST: dict[str, Callable[[np.random.Generator, int, float], Pair]] = {
    "right or wrong: 5 % differ either way": lambda chance, n, true: answers(0.05 + true, 0.05)(chance, n),
    "right or wrong: 15 % differ either way": lambda chance, n, true: answers(0.15 + true, 0.15)(chance, n),
    "all pages differ (normal)": lambda chance, n, true: scattered(0.1, true)(chance, n),
    "documents of unequal length (lognormal, σ = 1)": unequal(1, 1),
    "documents of unequal length (lognormal, σ = 1.5)": unequal(1.5, 1),
    "the same, with pages that differ independently": unequal(1.5, 0.5),
}
#: So many documents show the true difference of the pilots in four of five cases.
NEEDED = 60


def power_of(draw: Callable[[np.random.Generator, int, float], Pair], size: int, true: float, repeats: int) -> float:
    """The share of comparisons that find a true difference."""
    chance = np.random.default_rng([SEED, size, 2])
    return sum((pilot(draw, chance, size, true).p or 1) < 0.05 for _ in range(repeats)) / repeats


def pilot(
    draw: Callable[[np.random.Generator, int, float], Pair], chance: np.random.Generator, size: int, true: float
) -> Difference:
    """One comparison of two engines."""
    run, base, second = draw(chance, size, true)
    analysis = Analysis([Measure(name="score")], headline="score")
    return compare(analysis, samples(run, second), samples(base, second))["score"]


def print_power(repeats: int) -> None:
    """The table of how often a difference called detectable is found, and of the range of documents needed."""
    sizes = (12, 30, 100)
    print("\n| power of what is called detectable; range holds | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for title, draw in FORECAST.items():
        low, high = 0.0, 0.5
        for _ in range(7):
            middle = (low + high) / 2
            low, high = (low, middle) if power_of(draw, NEEDED, middle, repeats) > 0.8 else (middle, high)
        cells = []
        for size in sizes:
            chance = np.random.default_rng([SEED, size, 3])
            stated = [pilot(draw, chance, size, 0.0).detectable for _ in range(repeats)]
            shown = float(np.median([each for each in stated if each is not None]))
            pilots = [each for _ in range(repeats) if (each := pilot(draw, chance, size, high)).needed_least]
            held = [(each.needed_least or 0) <= NEEDED <= (each.needed_most or NEEDED) for each in pilots]
            found = 100 * power_of(draw, size, shown, repeats)
            cells.append(f"{found:.1f} %; {100 * float(np.mean(held)):.1f} %")
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
