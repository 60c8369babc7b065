"""How often the 95 % interval holds the true value, on simulated benchmarks: prints the tables of docs/statistics.md.

The same for the interval of the difference between two engines, for both where reading stops as soon as the interval is
narrow enough (loupe.stats.stopping), for figures read off a curve (loupe.stats.curves), and how often equally good
engines are called different.

Run: `python perf/coverage.py` (about half an hour; `--repeats 0.1` for a tenth of the repeats; `--only NAME` for the
tables of one section alone). Every repeat of a benchmark is one measure of a single call of `estimate`, so what
is measured is what users get, seed of the draws included.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from coverage_of_differences import print_power, print_sparse, print_together
from coverage_of_others import print_others, print_promises
from coverage_of_skew import (
    SEED,
    SHARES,
    Draw,
    Drawn,
    Floats,
    Shape,
    Simulated,
    asked,
    measures,
    print_noted,
    print_seeds,
    to_rows,
)
from loupe.stats import curves
from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import resample
from loupe.stats.clusters import Clustered, MeasureRows, Row
from loupe.stats.comparison import LEVEL, compare
from loupe.stats.estimates import estimate, interval_of
from loupe.stats.permutation import contrasts
from loupe.stats.stopping import FEWEST, Ends, Goal, decide
from loupe.types import Estimate, Measure, SampleScores, Score

REPEATS = {30: 4000, 200: 2000, 1000: 1000}
FEW = {2: 4000, 3: 4000, 5: 4000, 9: 4000, 10: 4000, 15: 4000}
#: With so many, every simulated benchmark has an interval.
FEWEST_SURE = 15
AT_ONCE = 500


def passes(lowest: float, highest: float) -> Draw:
    """One fact per page. The true rate differs by repeat, as coverage at one rate jumps with n (Brown et al. 2001)."""

    def draw(chance: np.random.Generator, shape: Shape) -> Drawn:
        rate = chance.uniform(lowest, highest, shape[1])
        return chance.binomial(1, rate, shape).astype(float), np.ones(shape), rate

    return draw


def facts(chance: np.random.Generator, shape: Shape) -> Drawn:
    """1 to 10 facts on a page; some pages are much harder than others (correlation within a page 0.2)."""
    number = chance.integers(1, 11, shape)
    return chance.binomial(number, chance.beta(3.2, 0.8, shape)).astype(float), number.astype(float), 0.8


def similarity(chance: np.random.Generator, shape: Shape) -> Drawn:
    """Edit similarity of pages, skewed towards 1 (skewness −1.6)."""
    return chance.beta(6, 1, shape), np.ones(shape), 6 / 7


def documents(chance: np.random.Generator, shape: Shape) -> Drawn:
    """Edit similarity of the pages of documents: 1 to 8 pages, half of the variance between documents."""
    pages = chance.integers(1, 9, shape)
    level = chance.beta(12, 3, shape)
    total = np.zeros(shape)
    for page in range(8):
        total += np.where(page < pages, chance.beta(15 * level, 15 * (1 - level) + 1e-9), 0)
    return total, pages.astype(float), 0.8


def characters(shape_of_rate: float) -> Draw:
    """Edits and characters of pages of very different length and quality; mean rate 5 %."""

    def draw(chance: np.random.Generator, shape: Shape) -> Drawn:
        length = np.round(chance.lognormal(7, 0.5, shape)).astype(int) + 1
        rate = chance.gamma(shape_of_rate, 0.05 / shape_of_rate, shape)
        return chance.binomial(length, np.minimum(rate, 1)).astype(float), length.astype(float), 0.05

    return draw


def failures(chance: np.random.Generator, shape: Shape) -> Drawn:
    """Near-perfect pages, of which 5 % fail altogether."""
    return chance.beta(30, 1, shape) * (chance.random(shape) >= 0.05), np.ones(shape), 0.95 * 30 / 31


BENCHMARKS = (
    Simulated("pass rate 60–95 %, one fact per page", passes(0.6, 0.95)),
    Simulated("pass rate 80 %, 1–10 facts per page, clustered", facts),
    Simulated("edit similarity of pages, mean 0.86, skewed", similarity),
    Simulated("edit similarity, 1–8 pages per document, clustered", documents),
    Simulated("CER summed over pages, page rates gamma (shape 3)", characters(3)),
    Simulated("CER summed over pages, page rates exponential", characters(1), stress=True),
    Simulated("pass rate 95–99 %, one fact per page", passes(0.95, 0.99), stress=True),
    Simulated("near-perfect pages, 5 % fail altogether", failures, stress=True),
)


def to_samples(rows: list[Row]) -> list[SampleScores]:
    """One sample for each cluster."""
    samples: dict[str, list[Score]] = {}
    for cluster, score in rows:
        samples.setdefault(cluster, []).append(score)
    return [SampleScores(sample=cluster, scores=scores) for cluster, scores in samples.items()]


def covered(benchmark: Simulated, clusters: int, repeats: int) -> tuple[float, float, float]:
    """Shares of repeats whose interval does not exclude the truth, lies above it, and lies below it."""
    chance = np.random.default_rng([SEED, clusters])
    above = below = done = 0
    while done < repeats:
        number = min(AT_ONCE, repeats - done)
        first, second, truth = benchmark.draw(chance, (clusters, number))
        found = estimate(Analysis(asked(benchmark, number)), to_rows(first, second)).values()
        for value, true in zip(found, np.broadcast_to(truth, number).tolist(), strict=True):
            if value.low is None or value.high is None:
                # It claims nothing that could be wrong; only a few clusters come without.
                assert clusters < FEWEST_SURE
                continue
            above += value.low > true + 1e-12
            below += value.high < true - 1e-12
        done += number
    return 1 - (above + below) / done, above / done, below / done


def false_alarms(benchmark: Simulated, clusters: int, repeats: int) -> float:
    """Share of pairs of equally good engines with p < 0.05: what is theirs on a page is dealt out by a coin."""
    chance = np.random.default_rng([SEED, clusters, 1])
    alarms = done = 0
    while done < repeats:
        shape = clusters, min(AT_ONCE, repeats - done)
        common, one, other = (np.stack(benchmark.draw(chance, shape)[:2]) for _ in range(3))
        coin = chance.random(shape) < 0.5
        runs = [to_samples(to_rows(*(common + np.where(side, one, other)))) for side in (coin, ~coin)]
        number = shape[1]
        found = compare(Analysis(measures(number)), *runs)
        alarms += sum(difference.p is not None and difference.p < 0.05 for difference in found.values())
        done += number
    return alarms / done


def differing(benchmark: Simulated, chance: np.random.Generator, shape: Shape) -> tuple[Floats, Floats, Floats, Floats]:
    """Two engines on the same pages: first counts of both, the second count, and the true difference.

    One has a tenth less than the other: it loses each fact or edit with a chance of 10 %, and half of the similarity on
    every fifth page.
    """
    first, second, truth = benchmark.draw(chance, shape)
    if np.array_equal(first, np.round(first)):
        other = chance.binomial(first.astype(int), 0.9).astype(float)
    else:
        other = first * np.where(chance.random(shape) < 0.2, 0.5, 1.0)
    return first, other, second, np.broadcast_to(0.1 * np.asarray(truth), shape[1])


def covered_differences(benchmark: Simulated, clusters: int, repeats: int) -> tuple[float, float, float]:
    """Shares of repeats whose interval of the difference holds the true one, lies above it, and lies below it.

    A difference that is the same on all pages has no interval; the true one is then not claimed to be outside.
    """
    chance = np.random.default_rng([SEED, clusters, 2])
    above = below = done = 0
    while done < repeats:
        number = min(AT_ONCE, repeats - done)
        first, other, second, truth = differing(benchmark, chance, (clusters, number))
        runs = [to_samples(to_rows(counts, second)) for counts in (first, other)]
        for measure, true in zip(measures(number), truth.tolist(), strict=True):
            both = ([pick(row, measure.name) for row in run] for run in runs)
            found = compare(Analysis([measure]), *both)[measure.name]
            above += found.low is not None and found.low > true + 1e-12
            below += found.high is not None and found.high < true - 1e-12
        done += number
    return 1 - (above + below) / done, above / done, below / done


#: Both counts of the clusters in each repeat, of one engine or of two.
Runs: TypeAlias = tuple[tuple[Floats, Floats], ...]


def clustered(counts: tuple[Floats, Floats], clusters: int, repeats: list[int]) -> Clustered:
    """The first clusters of these repeats; each repeat is a measure."""
    numbers = np.arange(clusters)
    table = np.stack([each[:clusters] for each in counts], axis=-1)
    rows = {str(repeat): MeasureRows(table[:, repeat], numbers) for repeat in repeats}
    return Clustered(tuple(map(str, range(clusters))), rows)


def intervals(benchmark: Simulated, runs: Runs, clusters: int, repeats: list[int]) -> dict[int, tuple[Ends, Floats]]:
    """Interval and influences after so many clusters, as `look` has them: of one engine, or of two apart."""
    better = benchmark.title.startswith(SHARES)
    analysis = Analysis([Measure(name=str(repeat), higher_is_better=better) for repeat in repeats])
    scores = [clustered(counts, clusters, repeats) for counts in runs]
    if len(scores) == 1:
        (values,) = (resample(analysis, run) for run in scores)
        rows = scores[0].measures
        found = {
            one.name: (interval_of(one, values[one.name], rows[one.name])[0], values[one.name].left_out)
            for one in analysis.measures
        }
    else:
        first, second = (resample(replace(analysis, draws=1), run) for run in scores)
        known = contrasts(analysis, *scores)
        found = {
            name: (known[name].interval(LEVEL) if name in known else None, first[name].left_out - second[name].left_out)
            for name in first
        }
    return {repeat: found[str(repeat)] for repeat in repeats}


def drawn_runs(benchmark: Simulated, chance: np.random.Generator, shape: Shape, *, two: bool) -> tuple[Runs, Floats]:
    """The counts of one engine or two, and the true value or difference of each repeat."""
    if two:
        first, other, second, truth = differing(benchmark, chance, shape)
        return ((first, second), (other, second)), truth
    first, second, true = benchmark.draw(chance, shape)
    return ((first, second),), np.broadcast_to(np.asarray(true, float), shape[1])


def covered_at_stop(
    benchmark: Simulated, expected: int, repeats: int, *, two: bool
) -> tuple[float, float, float, float]:
    """As `covered`, of intervals after which reading stopped; with the mean number of clusters read.

    The goal is the half-width that `expected` clusters have on average.
    """
    chance = np.random.default_rng([SEED, expected, 3 + two])
    pilot, _ = drawn_runs(benchmark, chance, (4000, 20), two=two)
    halves = [
        (ends[1] - ends[0]) / 2 for ends, _ in intervals(benchmark, pilot, 4000, list(range(20))).values() if ends
    ]
    goal = Goal(half_width=float(np.mean(halves)) * math.sqrt(4000 / expected), most=8 * expected)
    above = below = done = read = 0
    while done < repeats:
        number = min(AT_ONCE, repeats - done)
        runs, truth = drawn_runs(benchmark, chance, (goal.most, number), two=two)
        going, clusters = list(range(number)), FEWEST
        while going:
            looks = {}
            for repeat, (ends, influence) in intervals(benchmark, runs, clusters, going).items():
                looks[repeat] = decide(goal, ends, influence, clusters=clusters)
                if looks[repeat].ended:
                    above += ends is not None and ends[0] > truth[repeat] + 1e-12
                    below += ends is not None and ends[1] < truth[repeat] - 1e-12
                    read += clusters
            going = [repeat for repeat in going if not looks[repeat].ended]
            clusters += max((looks[repeat].more for repeat in going), default=0)
        done += number
    return 1 - (above + below) / done, above / done, below / done, read / done


def print_stopping(title: str, repeats: dict[int, int], *, two: bool) -> None:
    """One table of coverage where reading stops by width."""
    print(f"\n| {title} | " + " | ".join(f"n ≈ {expected}" for expected in repeats) + " |")
    print("|---|" + "---|" * len(repeats))
    for benchmark in BENCHMARKS:
        cells = []
        for expected, number in repeats.items():
            share, above, below, read = covered_at_stop(benchmark, expected, number, two=two)
            cells.append(f"{100 * share:.1f} % ({100 * below:.1f} / {100 * above:.1f}), {read:.0f} read")
        name = f"{'*stress:* ' if benchmark.stress else ''}{benchmark.title}"
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def pick(row: SampleScores, measure: str) -> SampleScores:
    """One repeat of a cluster: a comparison corrects over all measures that it is asked about."""
    return SampleScores(sample=row.sample, scores=[row.scores[int(measure)]])


def print_coverage(
    title: str, share_of: Callable[[Simulated, int, int], tuple[float, float, float]], repeats: dict[int, int]
) -> None:
    """One table. "Below" misses are intervals below the true value: an unlucky choice of pages."""
    print(f"\n| {title} | " + " | ".join(f"n = {clusters}" for clusters in repeats) + " |")
    print("|---|" + "---|" * len(repeats))
    for benchmark in BENCHMARKS:
        found = [share_of(benchmark, clusters, number) for clusters, number in repeats.items()]
        cells = [f"{100 * share:.1f} % ({100 * below:.1f} / {100 * above:.1f})" for share, above, below in found]
        name = f"{'*stress:* ' if benchmark.stress else ''}{benchmark.title}"
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


#: Rungs of a simulated ladder, and the CER that pages of middling difficulty have on them.
PLACES = (24.0, 16.0, 12.0, 10.0, 8.0, 7.0, 6.0, 5.0)
RATES = np.array([0.003, 0.004, 0.006, 0.01, 0.03, 0.07, 0.25, 0.7])
CER = Measure(name="cer", higher_is_better=False)


def climbed(chance: np.random.Generator, bases: int) -> list[curves.Rung]:
    """Base pages of very different difficulty (gamma, shape 4) of about 1,000 characters, on all rungs."""
    length = np.round(chance.lognormal(6.9, 0.3, (bases, 1))).astype(int)
    rates = np.minimum(chance.gamma(4, 0.25, (bases, 1)) * RATES, 1.0)
    edits = chance.binomial(length, rates)
    return [
        (str(base), place, (float(edits[base, at]), float(length[base, 0])))
        for base in range(bases)
        for at, place in enumerate(PLACES)
    ]


def figures_of(found: curves.Curve) -> dict[str, Estimate | curves.Crossing]:
    """What is read off a curve."""
    return {
        "limit (CER of 5 %)": curves.limit(found, 0.05),
        "half of the accuracy is gone": curves.half_loss(found),
        "area under the curve": curves.area(found),
        "reliance (last rung less the first)": curves.reliance(found)[-1],
    }


def print_figures(repeats: dict[int, int]) -> None:
    """The table of figures read off a curve; the truth is the figure of 100,000 base pages."""
    chance = np.random.default_rng([SEED, 5])
    truth = {
        name: each.value
        for name, each in figures_of(curves.curve(CER, climbed(chance, 100_000), PLACES, draws=1)).items()
    }
    held = {name: dict.fromkeys(repeats, 0) for name in truth}
    for bases, number in repeats.items():
        for _ in range(number):
            for name, found in figures_of(curves.curve(CER, climbed(chance, bases), PLACES)).items():
                true = truth[name]
                assert true is not None
                # An open end holds everything on its side.
                low, high = (
                    (-math.inf if found.low is None else found.low),
                    (math.inf if found.high is None else found.high),
                )
                held[name][bases] += low <= true <= high
    print("\n| figure of a curve | " + " | ".join(f"{bases} base pages" for bases in repeats) + " |")
    print("|---|" + "---|" * len(repeats))
    for name, counts in held.items():
        print(f"| {name} | " + " | ".join(f"{100 * counts[bases] / repeats[bases]:.1f} %" for bases in repeats) + " |")


#: A mean of parts: so many clusters of a part that varies much, of one that varies less, and of one that is yes or no.
PARTS = ((2, 3, 10), (2, 12, 30), (3, 6, 20), (4, 12, 30), (8, 12, 40))


def print_parts(repeats: int) -> None:
    """The table of means of parts that few clusters have."""
    names = ("hard", "easy", "traps")
    truth = (0.6 + 0.98 + 0.9) / 3
    analysis = Analysis(
        [Measure(name=name) for name in (*names, "overall")],
        summarize=lambda values: {"overall": sum(values[name] for name in names) / len(names)},
    )
    chance = np.random.default_rng([SEED, 6])
    print("\n| mean of three parts, clusters of each | holds the true value | half-width |\n|---|---|---|")
    for hard, easy, traps in PARTS:
        held, widths = 0, []
        for _ in range(repeats):
            values = {
                "hard": chance.beta(6, 4, hard),
                "easy": chance.uniform(0.96, 1.0, easy),
                "traps": (chance.random(traps) < 0.9).astype(float),
            }
            rows = [
                (f"{name} {number}", Score(measure=name, counts=(float(value), 1.0)))
                for name, each in values.items()
                for number, value in enumerate(each)
            ]
            found = estimate(analysis, rows)["overall"]
            held += found.low is None or found.high is None or found.low <= truth <= found.high
            widths += [] if found.low is None or found.high is None else [(found.high - found.low) / 2]
        print(f"| {hard}, {easy}, {traps} | {100 * held / repeats:.1f} % | {100 * float(np.mean(widths)):.1f} points |")


def print_fixed(repeats: dict[int, int], factor: float) -> None:
    """The tables of benchmarks whose number of clusters is known beforehand."""
    print(f"Coverage of the 95 % interval (missed below / above), seed {SEED}, repeats {repeats}")
    print_coverage("simulated benchmark", covered, repeats)
    print_coverage("difference of two engines", covered_differences, {30: repeats[30] // 2, 200: repeats[200] // 2})
    print("\n| equally good engines, p < 0.05 | n = 30 | n = 200 |\n|---|---|---|")
    for benchmark in (found for found in BENCHMARKS if not found.stress):
        shares = [false_alarms(benchmark, clusters, max(1, int(2000 * factor))) for clusters in (30, 200)]
        print(f"| {benchmark.title} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |", flush=True)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=float, default=1.0, help="factor on the number of repeats")
    parser.add_argument(
        "--only",
        choices=["few", "seeds", "noted", "sparse", "together", "power", "others", "promises", "stopping", "curves"],
        help="these tables alone",
    )
    chosen = parser.parse_args()
    factor = chosen.repeats
    repeats = {clusters: max(1, int(number * factor)) for clusters, number in REPEATS.items()}
    start = time.monotonic()
    if not chosen.only:
        print_fixed(repeats, factor)
    if chosen.only in (None, "few"):
        print_coverage("few clusters", covered, {few: max(1, int(number * factor)) for few, number in FEW.items()})
        print_parts(max(1, int(1000 * factor)))
    if chosen.only in (None, "seeds"):
        print_seeds(BENCHMARKS)
    if chosen.only in (None, "noted"):
        print_noted(BENCHMARKS, max(1, int(1000 * factor)))
    if chosen.only in (None, "sparse"):
        print_sparse(max(1, int(1000 * factor)))
    if chosen.only in (None, "together"):
        print_together(max(1, int(1000 * factor)))
    if chosen.only in (None, "power"):
        print_power(max(1, int(400 * factor)))
    if chosen.only in (None, "others"):
        print_others(max(1, int(1000 * factor)))
    if chosen.only in (None, "promises"):
        print_promises(max(1, int(1000 * factor)))
    if chosen.only in (None, "stopping"):
        at_stop = {expected: max(1, int(2000 * factor)) for expected in (100, 300)}
        print_stopping("stopped by width", at_stop, two=False)
        differences = {expected: number // 2 for expected, number in at_stop.items()}
        print_stopping("difference, stopped by width", differences, two=True)
    if chosen.only in (None, "curves"):
        print_figures({bases: max(1, int(1000 * factor)) for bases in (2, 3, 6, 20, 60)})
    print(f"\n{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
