"""Composites, medians, slices, several measures at once, and what no test can promise: for perf/coverage.py.

Every repeat is one call of `estimate`, `compare` or `standings`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loupe.stats.analysis import Analysis
from loupe.stats.comparison import compare
from loupe.stats.estimates import FEWEST_OF_PART, estimate
from loupe.stats.ranks import standings
from loupe.types import Measure, SampleScores, Score

SEED = 20261128
SIZES = (12, 30, 100)
#: What each part of the composite is less in the first run.
LOST = 0.02
NAMES = ("text", "tables", "order")
OVERALL = Analysis(
    [Measure(name=name) for name in (*NAMES, "overall")],
    summarize=lambda values: {"overall": sum(values[name] for name in NAMES) / len(NAMES)},
    headline="overall",
)
MEDIAN = Analysis(
    [Measure(name="median", pooled=True, value=lambda rows: float(np.median(rows[:, 0])))], headline="median"
)
MEAN = Analysis([Measure(name="mean")], headline="mean")
SIX = Analysis([Measure(name=f"{number}") for number in range(6)], headline="none of them")
#: Low and high end that were found, and the true value.
Held = tuple[float | None, float | None, float]


def pages(values: dict[str, NDArray[np.float64]]) -> list[SampleScores]:
    """One sample for each place of the arrays; nan is a measure that the page does not have."""
    return [
        SampleScores(
            sample=f"{number}",
            scores=[
                Score(measure=name, counts=(float(each[number]), 1.0))
                for name, each in values.items()
                if not np.isnan(each[number])
            ],
        )
        for number in range(len(next(iter(values.values()))))
    ]


def parts(chance: np.random.Generator, size: int, level: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Three measures that hard pages lower together; half of the pages have a table."""
    found = {name: np.clip(level + chance.normal(0, 0.08, size), -1, 2) for name in NAMES}
    found["tables"] = np.where(chance.random(size) < 0.5, found["tables"], np.nan)
    return found


def of_composite(chance: np.random.Generator, size: int) -> list[Held]:
    """The value of a mean of three measures."""
    samples = pages(parts(chance, size, chance.uniform(0.5, 0.9, size)))
    found = estimate(OVERALL, ((one.sample, score) for one in samples for score in one.scores))["overall"]
    return [(found.low, found.high, 0.7)]


def of_composites(chance: np.random.Generator, size: int) -> list[Held]:
    """The difference of two such means."""
    base = parts(chance, size, chance.uniform(0.5, 0.9, size))
    run = {name: each - LOST + chance.normal(0, 0.08, size) for name, each in base.items()}
    found = compare(OVERALL, pages(run), pages(base))["overall"]
    return [(found.low, found.high, -LOST)]


def of_median(chance: np.random.Generator, size: int) -> list[Held]:
    """The median of pages, a pooled measure."""
    values = chance.beta(6, 1, size).tolist()
    rows = ((f"{page}", Score(measure="median", counts=(value,))) for page, value in enumerate(values))
    found = estimate(MEDIAN, rows)["median"]
    return [(found.low, found.high, 0.5 ** (1 / 6))]


def of_medians(chance: np.random.Generator, size: int) -> list[Held]:
    """The difference of two medians."""
    level = chance.normal(0.6, 0.1, size)
    run, base = ({"median": level - lost + chance.normal(0, 0.05, size)} for lost in (LOST, 0.0))
    found = compare(MEDIAN, pages(run), pages(base))["median"]
    return [(found.low, found.high, -LOST)]


def of_slice(chance: np.random.Generator, size: int) -> list[Held]:
    """The mean of a slice that has a third of the pages, as often as it has an interval."""
    values = chance.beta(6, 1, max(int(chance.binomial(size, 1 / 3)), 1)).tolist()
    rows = ((f"{page}", Score(measure="mean", counts=(value, 1.0))) for page, value in enumerate(values))
    found = estimate(MEAN, rows, fewest=FEWEST_OF_PART)["mean"]
    return [(found.low, found.high, 6 / 7)]


def of_six(chance: np.random.Generator, size: int) -> list[Held]:
    """The differences of six measures of the same pages, which hard pages lower together; three are equal."""
    shared = chance.normal(0, 0.05, size)
    lost = [0.0, 0.0, 0.0, 0.03, 0.1, 0.3]
    base = {f"{number}": chance.uniform(0.4, 0.6, size) for number in range(6)}
    run = {name: each - lost[int(name)] + shared + chance.normal(0, 0.1, size) for name, each in base.items()}
    found = compare(SIX, pages(run), pages(base))
    return [(found[name].low, found[name].high, -lost[int(name)]) for name in base]


NUMBERS: dict[str, Callable[[np.random.Generator, int], list[Held]]] = {
    "composite: mean of three measures, one on half of the pages": of_composite,
    "composite: difference of two engines": of_composites,
    "`pooled`: median of the pages": of_median,
    "`pooled`: difference of two medians": of_medians,
    "slice with a third of the pages": of_slice,
    "six measures at once: all intervals hold, ends at 0 aside": of_six,
}


def holds(found: list[Held]) -> bool:
    """Whether all intervals hold. An end at 0 says only that Holm's p-value is low: it counts as open up to 0."""
    return all(low is None or high is None or low - 1e-8 <= true <= high + 1e-8 for low, high, true in found)


def print_others(repeats: int) -> None:
    """The table of how often the interval of other numbers holds the true value."""
    print("\n| number | " + " | ".join(f"n = {size}" for size in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    for title, draw in NUMBERS.items():
        cells = []
        for size in SIZES:
            chance = np.random.default_rng([SEED, size])
            tried = [each for _ in range(repeats) if (each := draw(chance, size))[0][0] is not None]
            share = sum(map(holds, tried)) / max(len(tried), 1)
            error = 100 * (share * (1 - share) / max(len(tried), 1)) ** 0.5
            cells.append(f"{100 * share:.1f} % ± {error:.1f}" if len(tried) > repeats / 20 else "none")
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


def print_promises(repeats: int) -> None:
    """What no test can promise: equal means of losses that are no exchange; and three engines in a circle."""
    print("\n| equal means: 2 points on every page against 20 on a tenth | p < 0.05 |\n|---|---|")
    for size in (8, 12, 30, 100):
        chance = np.random.default_rng([SEED, size, 1])
        low = 0
        for _ in range(repeats):
            base = chance.uniform(0.4, 0.6, size)
            little, much = base - 0.02, base - 0.2 * (chance.random(size) < 0.1)
            low += (compare(MEAN, pages({"mean": little}), pages({"mean": much}))["mean"].p or 1) < 0.05
        print(f"| n = {size} | {100 * low / repeats:.1f} % |", flush=True)
    print("\n| three engines, each 10 points ahead of the next, in a circle | all have rank 2 |\n|---|---|")
    for size in (12, 30, 100):
        chance = np.random.default_rng([SEED, size, 2])
        second = sum(list(standings(MEAN, circle(chance, size)).ranks.values()) == [2, 2, 2] for _ in range(repeats))
        print(f"| {size} samples for each pair | {100 * second / repeats:.1f} % |", flush=True)


def circle(chance: np.random.Generator, size: int) -> dict[str, list[SampleScores]]:
    """Three runs; each shares some samples with the one that it beats, and others with the one that beats it."""
    runs: dict[str, list[SampleScores]] = {name: [] for name in "abc"}
    for better, worse in ("ab", "bc", "ca"):
        base = chance.uniform(0.4, 0.6, size)
        for name, ahead in ((better, 0.1), (worse, 0.0)):
            values = base + ahead + chance.normal(0, 0.1, size)
            runs[name] += [
                SampleScores(
                    sample=f"{better}{worse}{number}", scores=[Score(measure="mean", counts=(float(value), 1.0))]
                )
                for number, value in enumerate(values)
            ]
    return runs
