"""Intervals, p-values and distributions against SciPy's own functions, where both compute the same quantity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.stats import binom, binomtest, gamma, t, ttest_1samp, ttest_ind, ttest_rel

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import distribution_of_sum, resample
from loupe.stats.bounds_of_unread import chance_above
from loupe.stats.clusters import sort_into_clusters
from loupe.stats.comparison import compare
from loupe.stats.curves import _monotone
from loupe.stats.estimates import estimate
from loupe.stats.proportions import exact_interval, mcnemar_exact, wilson_interval
from loupe.stats.student import t_cumulative, t_quantile
from loupe.types import Measure, SampleScores, Score

NUMBER = Measure(name="score", unit="number")


def rows(values: np.ndarray, measure: str = "score") -> list[tuple[str, Score]]:
    return [(f"{n}", Score(measure=measure, counts=(value, 1.0))) for n, value in enumerate(values.tolist())]


def run(values: np.ndarray) -> list[SampleScores]:
    return [SampleScores(sample=name, scores=[score]) for name, score in rows(values)]


@given(st.integers(0, 300), st.integers(1, 300), st.sampled_from([0.9, 0.95, 0.995]))
def test_intervals_of_a_share_are_wilsons_and_those_of_clopper_and_pearson(right: int, n: int, level: float) -> None:
    found = binomtest(right := min(right, n), n)
    for ours, method in ((wilson_interval, "wilson"), (exact_interval, "exact")):
        assert ours(right, n, confidence=level) == pytest.approx(found.proportion_ci(level, method), abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemars_p_is_that_of_the_binomial_test(only_a: int, only_b: int) -> None:
    a, b = [True] * only_a + [False] * only_b, [False] * only_a + [True] * only_b
    expected = binomtest(only_a, only_a + only_b).pvalue if a else 1.0
    assert mcnemar_exact(a, b) == pytest.approx(expected)


@given(st.integers(1, 3000), st.floats(-30, 30), st.floats(0.001, 0.999))
def test_students_distribution(degrees: int, value: float, probability: float) -> None:
    assert t_cumulative(value, degrees) == pytest.approx(t.cdf(value, degrees), abs=1e-5)
    assert t_quantile(probability, degrees) == pytest.approx(t.ppf(probability, degrees), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_interval_of_a_few_pages_is_that_of_the_t_test(n: int) -> None:
    values = np.random.default_rng(n).normal(0.6, 0.1, n)
    found = estimate(Analysis([NUMBER]), rows(values))["score"]
    assert (found.low, found.high) == pytest.approx(tuple(ttest_1samp(values, 0).confidence_interval()), rel=1e-9)


@pytest.mark.parametrize("n", [30, 100])
def test_the_interval_of_a_difference_is_that_of_the_paired_t_test_if_it_is_normal(n: int) -> None:
    chance = np.random.default_rng(n)
    base, apart = chance.uniform(0.3, 0.7, n), chance.normal(0.02, 0.1, n)
    found = compare(Analysis([NUMBER]), run(base + apart), run(base))["score"]
    expected = ttest_rel(base + apart, base)
    low, high = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.04 * (high - low))
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)


def test_a_composite_has_the_degrees_of_freedom_of_satterthwaite() -> None:
    """Those of Welch's test; rounded down, and never more than the clusters allow."""
    chance = np.random.default_rng(1)
    first, second = chance.normal(0.5, 0.1, 7), chance.normal(0.5, 0.02, 40)
    measures = [Measure(name=name, unit="number") for name in ("a", "b", "gap")]
    analysis = Analysis(measures, summarize=lambda values: {"gap": values["a"] - values["b"]})
    apart = [*rows(first, "a"), *((f"other {page}", score) for page, score in rows(second, "b"))]
    found = resample(analysis, sort_into_clusters(apart, analysis.names))["gap"]
    welch = ttest_ind(first, second, equal_var=False)
    assert found.degrees == int(welch.df)
    assert found.point / found.error == pytest.approx(welch.statistic)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_a_curve_is_levelled_by_isotonic_regression(values: list[float]) -> None:
    assert _monotone(np.array([values]))[0] == pytest.approx(isotonic_regression(values).x, abs=1e-9)


@pytest.mark.parametrize(("wrong", "pages"), [(1, 12), (3, 30), (40, 100)])
def test_draws_of_right_and_wrong_answers_are_binomial(wrong: int, pages: int) -> None:
    ends, reached = distribution_of_sum(np.array([0.0] * (pages - wrong) + [1.0] * wrong))
    counts = np.arange(min(pages, 6 * wrong))
    assert np.interp(counts + 0.5, ends, reached) == pytest.approx(binom.cdf(counts, pages, wrong / pages), abs=1e-3)


@pytest.mark.parametrize("pages", [5, 12, 60])
@pytest.mark.parametrize("bound", [0.7, 1.2, 1.6])
def test_the_chance_behind_bounds_of_unread_pages_is_that_of_gamma_variables(pages: int, bound: float) -> None:
    """A page that adds `pages` times the bound against so many that take 1: the sum of these is a gamma variable."""
    terms = np.array([bound * pages, *[-1.0] * pages])
    grid = (np.arange(200_000) + 0.5) / 200_000
    expected = float(np.mean(gamma.cdf(-bound * pages * np.log(grid), pages)))
    assert chance_above(terms) == pytest.approx(expected, rel=0.02)
