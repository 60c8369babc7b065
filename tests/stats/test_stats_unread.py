"""Intervals of errors that few pages carry: they allow for an unread page that fails altogether."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import interval, resample
from loupe.stats.bounds_of_unread import Contributions
from loupe.stats.clusters import sort_into_clusters
from loupe.stats.estimates import estimate
from loupe.types import Estimate, Measure, Score
from tests.stats.test_stats_estimates import MEAN, known, mean_rows


def test_a_measure_of_any_kind_says_that_few_pages_carry_its_error() -> None:
    pooled = Measure(name="pooled", pooled=True, value=lambda rows: float(rows[:, 0].mean()))
    speed = Measure(name="speed", unit="number")
    cer = Measure(name="cer", higher_is_better=False)
    analysis = Analysis(
        [MEAN, pooled, cer, speed, Measure(name="both")], summarize=lambda found: {"both": found["mean"]}
    )
    few = [0.1, 0.95] + [1.0] * 28
    many = np.random.default_rng(1).beta(6, 1, 30).tolist()
    for values, noted in ((few, {"mean", "pooled", "cer", "both"}), (many, set())):
        named = {"mean": values, "pooled": values, "speed": values, "cer": [1 - value for value in values]}
        found = estimate(analysis, [row for name, each in named.items() for row in mean_rows(each, name)])
        assert {name for name, each in found.items() if each.few_carry_error} == noted
    exact = estimate(Analysis([MEAN]), mean_rows([0.0] + [1.0] * 29))["mean"]
    assert exact.low is not None and not exact.few_carry_error
    assert not msgspec.convert({"value": 0.5, "low": 0.1, "high": 0.9, "n": 4}, Estimate).few_carry_error


def losses_of(chance: np.random.Generator, pages: int) -> list[float]:
    """Mostly perfect pages, of which a few have an error and one fails."""
    return [1.0, *(chance.random(pages - 1) ** 8 * (chance.random(pages - 1) < 0.5)).tolist()]


@given(st.integers(12, 60), st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_worse_end_alone_allows_for_a_page_that_fails_and_so_does_its_mirror(pages: int, seed: int) -> None:
    losses = losses_of(np.random.default_rng(seed), pages)
    cer = Measure(name="cer", higher_is_better=False)
    rows = mean_rows([1 - each for each in losses]) + mean_rows(losses, "cer")
    scores = sort_into_clusters(rows, ["mean", "cer"])
    analysis = Analysis([MEAN, cer])
    found = estimate(analysis, rows)
    plain = {name: interval(each) for name, each in resample(analysis, scores).items()}
    for name, worse in (("mean", "low"), ("cer", "high")):
        low, high = plain[name] or (math.nan, math.nan)
        wide = found[name]
        assume(wide.few_carry_error)
        assert wide.low is not None and wide.high is not None
        assert 0 <= wide.low <= low and high <= wide.high <= 1
        assert (wide.high == high) if worse == "low" else (wide.low == low)
    (_, low, high), (_, least, most) = known(found["mean"]), known(found["cer"])
    assert (1 - high, 1 - low) == pytest.approx((least, most), abs=1e-5)


@given(st.integers(12, 40), st.integers(0, 10_000), st.data())
@settings(max_examples=40)
def test_a_page_that_gets_worse_never_lowers_the_bound_of_unread_pages(pages: int, seed: int, data: Any) -> None:
    losses = np.array(losses_of(np.random.default_rng(seed), pages))
    weights = np.full(pages, 1 / pages)
    page = data.draw(st.integers(0, pages - 1))
    worse = losses.copy()
    worse[page] = data.draw(st.floats(float(losses[page]), 1.0))
    first, second = (Contributions(each * weights, weights, 1.0).upper_end(0.05) for each in (losses, worse))
    assert losses.mean() < first <= second + 1e-6 <= 1 + 1e-6


def test_the_bound_of_unread_pages_is_the_percentile_of_weighted_means() -> None:
    chance = np.random.default_rng(4)
    losses, sizes = np.array(losses_of(chance, 15)), chance.integers(1, 9, 15).astype(float)
    weights = sizes / sizes.sum()
    # As large as the page in which the average unit lies, and as bad as any that was read.
    unread = float((weights**2).sum())
    lost = np.append(losses * weights, max(unread, float((losses * weights).max())))
    drawn = chance.exponential(size=(400_000, 16))
    expected = np.quantile((drawn @ lost) / (drawn @ np.append(weights, unread)), 0.975)
    assert Contributions(losses * weights, weights, 1.0).upper_end(0.05) == pytest.approx(expected, abs=0.005)


def test_an_error_that_few_pages_carry_is_held_by_its_interval() -> None:
    """Of 12 pages, 60 % are perfect, long ones worse, and 3 % loop, 200 times. perf/coverage.py has more of them."""
    chance = np.random.default_rng(6)
    length = np.round(chance.lognormal(7, 0.8, (12, 200))) + 1
    rate = np.where(chance.random((12, 200)) < 0.6, 0, chance.gamma(1, 0.02, (12, 200)) * length / 1100)
    edits = np.where(chance.random((12, 200)) < 0.03, length, np.minimum(rate, 1) * length)
    measures = [Measure(name=str(repeat), higher_is_better=False) for repeat in range(200)]
    rows = [
        (str(page), Score(measure=str(repeat), counts=(float(edits[page, repeat]), float(length[page, repeat]))))
        for page in range(12)
        for repeat in range(200)
    ]
    found = estimate(Analysis(measures, draws=500), rows).values()
    # The true rate: 0.0207 of pages that do not loop, and all of the 3 % that do.
    held = [one.low <= 0.0501 <= one.high for one in found if one.low is not None and one.high is not None]
    assert np.mean(held) >= 0.9, np.mean(held)
