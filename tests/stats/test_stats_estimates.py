"""Intervals against closed forms, and what must not change them."""

from __future__ import annotations

import math
import random
import tracemalloc
from dataclasses import replace
from statistics import NormalDist
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from loupe.errors import LoupeError
from loupe.metrics import rate_of_sums
from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import FEW, multiplicities
from loupe.stats.clusters import Row
from loupe.stats.estimates import estimate
from loupe.stats.student import t_cumulative, t_quantile
from loupe.types import Estimate, Measure, Score, Values

MEAN = Measure(name="mean")
RATE = Measure(name="cer", higher_is_better=False, value=rate_of_sums)


def mean_rows(values: list[float], measure: str = "mean") -> list[Row]:
    return [(f"page {index}", Score(measure=measure, counts=(value, 1.0))) for index, value in enumerate(values)]


def known(found: Estimate) -> tuple[float, float, float]:
    assert found.value is not None and found.low is not None and found.high is not None
    return found.value, found.low, found.high


@pytest.mark.parametrize("n", [10, 30, 300])
def test_the_interval_of_a_mean_is_that_of_student(n: int) -> None:
    values = [NormalDist(0.6, 0.1).inv_cdf((index + 0.5) / n) for index in range(n)]
    value, low, high = known(estimate(Analysis([MEAN]), mean_rows(values))["mean"])
    half = t_quantile(0.975, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    assert value == pytest.approx(0.6)
    assert low == pytest.approx(0.6 - half, abs=0.12 * half)
    assert high == pytest.approx(0.6 + half, abs=0.12 * half)


def test_the_interval_of_a_ratio_is_that_of_the_delta_method() -> None:
    generator = np.random.default_rng(5)
    length = generator.integers(50, 500, 800).astype(float)
    edits = generator.binomial(length.astype(int), 0.06).astype(float)
    rows = [(str(i), Score(measure="cer", counts=pair)) for i, pair in enumerate(zip(edits, length, strict=True))]
    value, low, high = known(estimate(Analysis([RATE]), rows)["cer"])
    residual = edits - value * length
    half = 1.96 * float(np.std(residual)) * math.sqrt(800) / float(length.sum())
    assert value == edits.sum() / length.sum()
    assert (high - low) / 2 == pytest.approx(half, rel=0.08)


def test_the_interval_leans_towards_the_rare_bad_pages() -> None:
    value, low, high = known(estimate(Analysis([MEAN]), mean_rows([0.97] * 27 + [0.2, 0.4, 0.5]))["mean"])
    assert value - low > 1.3 * (high - value)


def test_units_of_one_cluster_are_drawn_together() -> None:
    pages = mean_rows([float(index % 2) for index in range(40)])
    units = [row for row in pages for _ in range(25)]
    by_page = known(estimate(Analysis([MEAN]), pages)["mean"])
    assert known(estimate(Analysis([MEAN]), units)["mean"]) == pytest.approx(by_page)
    alone = [(f"{label} {index}", score) for index, (label, score) in enumerate(units)]
    _, low, high = known(estimate(Analysis([MEAN]), alone)["mean"])
    assert high - low < 0.3 * (by_page[2] - by_page[1])


@given(st.lists(st.tuples(st.integers(0, 8), st.floats(0, 1)), min_size=1, max_size=40), st.randoms())
def test_the_order_of_the_rows_changes_nothing(pairs: list[tuple[int, float]], chance: random.Random) -> None:
    rows: list[Row] = [(str(page), Score(measure="mean", counts=(value, 1.0))) for page, value in pairs]
    shuffled = chance.sample(rows, len(rows))
    assert estimate(Analysis([MEAN], draws=100), rows) == estimate(Analysis([MEAN], draws=100), shuffled)


@given(st.lists(st.floats(0, 1), min_size=FEW, max_size=30))
def test_the_interval_lies_within_the_values_and_around_the_mean(values: list[float]) -> None:
    found = estimate(Analysis([Measure(name="mean", unit="number")], draws=400), mean_rows(values))["mean"]
    if found.low is None:
        assert max(values) - min(values) < 1e-9
        return
    value, low, high = known(found)
    assert min(values) - 1e-9 <= low <= value + 1e-9
    assert value - 1e-9 <= high <= max(values) + 1e-9


@given(st.lists(st.floats(0, 1), min_size=2, max_size=FEW - 1))
def test_the_interval_of_a_few_pages_lies_around_the_mean_and_within_what_a_share_can_be(values: list[float]) -> None:
    found = estimate(Analysis([MEAN], draws=400), mean_rows(values))["mean"]
    if found.low is None:
        assert max(values) - min(values) < 1e-9
        return
    value, low, high = known(found)
    assert 0 <= low <= value + 1e-9 and value - 1e-9 <= high <= 1


@pytest.mark.parametrize("values", [[0.6, 0.7], [0.5, 0.55, 0.62], [0.4, 0.5, 0.45, 0.6, 0.52]])
def test_a_few_pages_have_the_interval_of_student(values: list[float]) -> None:
    # Draws of two pages lie between these pages, and so would half of all means.
    n = len(values)
    value, low, high = known(estimate(Analysis([Measure(name="mean", unit="number")]), mean_rows(values))["mean"])
    half = t_quantile(0.975, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    assert (value - low, high - value) == pytest.approx((half, half))


@pytest.mark.parametrize(
    ("measure", "values", "ends"),
    [
        (MEAN, [0.3, 0.9], (0.0, 1.0)),
        (Measure(name="mean", unit="count"), [0.3, 0.9], (0.0, 1.0)),
        (Measure(name="wrong", higher_is_better=False), [0.3, 0.9], (0.0, 1.0)),
        # An error rate that passes 1 on a page has no upper end.
        (RATE, [0.3, 1.1], (0.0, 0.7 + 12.7062 * 0.4)),
        (Measure(name="points", unit="number"), [0.3, 0.9], (0.6 - 12.7062 * 0.3, 0.6 + 12.7062 * 0.3)),
    ],
)
def test_an_interval_of_a_few_pages_ends_where_the_measure_does(
    measure: Measure, values: list[float], ends: tuple[float, float]
) -> None:
    assert known(estimate(Analysis([measure]), mean_rows(values, measure.name))[measure.name])[1:] == pytest.approx(
        ends
    )


def test_a_composite_of_a_few_pages_ends_where_its_parts_do() -> None:
    rows = mean_rows([0.1, 0.9], "a") + mean_rows([0.9, 0.2], "b")
    measures = [Measure(name="a"), Measure(name="b"), Measure(name="gap", higher_is_better=False)]
    found = estimate(Analysis(measures, summarize=lambda values: {"gap": values["b"] - values["a"]}), rows)
    assert known(found["gap"])[1:] == (-1.0, 1.0)


@pytest.mark.parametrize("pages", [2, 4])
@pytest.mark.parametrize("measure", [Measure(name="b", unit="number"), replace(RATE, name="b")])
def test_few_pages_among_many_reach_as_far_as_when_they_are_alone(measure: Measure, pages: int) -> None:
    alone = mean_rows([0.60, 0.66, 0.61, 0.64][:pages], "b")
    others = [(f"other {label}", score) for label, score in mean_rows([index / 50 for index in range(50)], "a")]
    among = known(estimate(Analysis([Measure(name="a"), measure]), [*alone, *others])["b"])
    # Draws without any of the few are no draws of them, and no zeros either.
    assert among == pytest.approx(known(estimate(Analysis([measure]), alone)["b"]), abs=0.01)


def test_a_pooled_measure_of_a_few_pages_reaches_as_far_as_a_summed_one() -> None:
    pooled = Measure(name="mean", unit="number", pooled=True, value=lambda rows: np.mean(rows[:, 0]))
    summed = Measure(name="mean", unit="number")
    found = [known(estimate(Analysis([each]), mean_rows([0.5, 0.55, 0.62]))["mean"]) for each in (pooled, summed)]
    assert found[0] == pytest.approx(found[1])


def parts(values: Values) -> Values:
    return {"overall": (values["a"] + values["b"]) / 2, "gap": values["b"] - values["a"], "other": values["a"] * 2}


def composites(a: list[float], b: list[float]) -> dict[str, Estimate]:
    """Of pages with one measure each."""
    rows = [*((f"b {label}", score) for label, score in mean_rows(b, "b")), *mean_rows(a, "a")]
    names = ("a", "b", "overall", "gap", "other")
    return estimate(Analysis([Measure(name=name, unit="number") for name in names], summarize=parts), rows)


def test_a_composite_has_the_degrees_of_freedom_of_the_parts_that_move_it() -> None:
    # b has two pages and hardly varies; a has fifty. Student's factor for two pages is 12.7, for fifty 2.01.
    found = composites([index / 50 for index in range(50)], [0.60, 0.62])
    half = 2.01 * math.hypot(0.2886 / math.sqrt(49), 0.01) / 2
    _, low, high = known(found["overall"])
    assert (high - low) / 2 == pytest.approx(half, rel=0.12)
    # What does not depend on b is not widened by it.
    assert known(found["other"])[1] == pytest.approx(2 * known(found["a"])[1], rel=0.02)


def test_a_composite_whose_weak_part_decides_reaches_as_far_as_that_part() -> None:
    for steady in ([0.8] * 50, [0.8] * 49 + [0.801]):
        found = composites(steady, [0.5, 0.9])
        value, low, high = known(found["overall"])
        assert (value - low, high - value) == pytest.approx((12.7062 * 0.2 / 2,) * 2, rel=0.01)


def test_measures_of_the_same_pages_are_no_more_evidence_than_one() -> None:
    values = [0.2, 0.5, 0.6, 0.9]
    rows = mean_rows(values, "a") + mean_rows(values, "b")
    measures = [Measure(name=name, unit="number") for name in ("a", "b", "overall")]
    found = estimate(Analysis(measures, summarize=overall), rows)
    assert known(found["overall"]) == pytest.approx(known(found["a"]))


def test_the_seed_decides_the_interval() -> None:
    rows = mean_rows([index / 40 for index in range(40)])
    assert estimate(Analysis([MEAN], seed=7), rows) == estimate(Analysis([MEAN], seed=7), rows)
    assert estimate(Analysis([MEAN], seed=7), rows) != estimate(Analysis([MEAN], seed=8), rows)


def test_draws_do_not_depend_on_how_they_are_cut_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(multiplicities(17, draws=50, seed=3)))
    monkeypatch.setattr("loupe.stats.bootstrap._CHUNK", 60)
    parts = list(multiplicities(17, draws=50, seed=3))
    assert len(parts) == 17
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.all(whole.sum(axis=1) == 17)


def test_every_cluster_is_drawn_once_on_average_with_the_spread_of_a_poisson() -> None:
    drawn = np.concatenate(list(multiplicities(200, draws=2000, seed=0)))
    assert np.abs(drawn.mean(axis=0) - 1).max() < 0.12
    assert drawn.var() == pytest.approx(1 - 1 / 200, rel=0.02)


def test_one_cluster_has_a_value_and_no_interval() -> None:
    assert estimate(Analysis([MEAN]), mean_rows([0.5]))["mean"] == Estimate(value=0.5, n=1)


def test_no_rows_have_no_value() -> None:
    composite = Measure(name="overall")
    found = estimate(Analysis([MEAN, composite], summarize=lambda values: {"overall": values["mean"] / 2}), [])
    assert found == {"mean": Estimate(value=None), "overall": Estimate(value=None)}


def test_a_measure_without_scores_is_not_computed() -> None:
    found = estimate(Analysis([MEAN, Measure(name="cdm")]), mean_rows([0.2, 0.4, 0.6]))
    assert found["cdm"] == Estimate(value=None)
    assert found["mean"].value == pytest.approx(0.4)


def test_nothing_divided_by_nothing_is_not_computed() -> None:
    rows: list[Row] = [(str(index), Score(measure="mean", counts=(0.0, 0.0))) for index in range(5)]
    assert estimate(Analysis([MEAN]), rows)["mean"] == Estimate(value=None, n=5)


def test_a_measure_of_one_page_among_many_has_no_interval() -> None:
    rows = [*mean_rows([0.1, 0.5, 0.9]), ("page 1", Score(measure="table", counts=(0.7, 1.0)))]
    found = estimate(Analysis([MEAN, Measure(name="table")]), rows)
    assert found["table"] == Estimate(value=0.7, n=1)
    assert found["mean"].low is not None


def test_a_measure_on_few_of_many_pages_has_an_interval_over_the_draws_that_hold_it() -> None:
    rows = mean_rows([0.5] * 60) + [(f"page {i}", Score(measure="table", counts=(i / 4, 1.0))) for i in range(4)]
    value, low, high = known(estimate(Analysis([MEAN, Measure(name="table")]), rows)["table"])
    assert (value, low < value < high) == (0.375, True)


def test_without_intervals_only_values_are_computed() -> None:
    found = estimate(Analysis([MEAN], draws=0), mean_rows([0.0, 0.25]))["mean"]
    assert found == Estimate(value=0.125, n=2)


@pytest.mark.parametrize(("value", "expected"), [(1.0, (0.8843, 1.0)), (0.0, (0.0, 0.1157))])
def test_all_right_or_all_wrong_gets_the_exact_binomial_bound(value: float, expected: tuple[float, float]) -> None:
    _, low, high = known(estimate(Analysis([MEAN]), mean_rows([value] * 30))["mean"])
    assert (low, high) == pytest.approx(expected, abs=4e-4)


@pytest.mark.parametrize("value", [0.5, 0.7, 1e6])
def test_equal_pages_that_are_no_bound_have_no_interval_rather_than_one_without_width(value: float) -> None:
    found = estimate(Analysis([MEAN]), mean_rows([value] * 4))["mean"]
    assert found.value == pytest.approx(value) and found.low is None and found.high is None


@pytest.mark.parametrize(
    "measure", [RATE, Measure(name="cer", higher_is_better=False), Measure(name="cer", unit="number")]
)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_binomial_bound_is_for_shares_only_not_for_error_rates_which_have_no_upper_end(
    measure: Measure, value: float
) -> None:
    found = estimate(Analysis([measure]), mean_rows([value] * 5, "cer"))["cer"]
    assert (found.value, found.low, found.high) == (value, None, None)


def overall(values: Values) -> Values:
    return {"overall": sum(values.values()) / len(values)}


def test_a_composite_is_computed_in_every_draw() -> None:
    a, b = [index / 50 for index in range(50)], [1 - index / 50 for index in range(50)]
    rows = mean_rows(a, "a") + mean_rows(b, "b")
    found = estimate(Analysis([Measure(name="a"), Measure(name="b"), Measure(name="overall")], summarize=overall), rows)
    # What a page gains in one it loses in the other, so their mean cannot vary.
    assert found["overall"].value == pytest.approx(0.5) and found["overall"].low is None
    assert found["overall"].n == 50
    assert known(found["a"])[2] - known(found["a"])[1] > 0.1


def test_a_composite_of_a_measure_that_was_not_computed_is_not_computed() -> None:
    rows = mean_rows([0.1, 0.2, 0.3], "a")
    measures = [Measure(name="a"), Measure(name="b"), Measure(name="overall")]
    needs_both = estimate(Analysis(measures, summarize=lambda values: {"overall": values["a"] + values["b"]}), rows)
    assert needs_both["overall"].value is None
    takes_what_is_there = estimate(Analysis(measures, summarize=overall), rows)
    assert takes_what_is_there["overall"].value == pytest.approx(0.2)


def test_a_composite_with_a_component_on_one_page_has_no_interval() -> None:
    rows = [*mean_rows([0.1, 0.5, 0.9], "a"), ("page 1", Score(measure="b", counts=(0.7, 1.0)))]
    found = estimate(Analysis([Measure(name="a"), Measure(name="b"), Measure(name="overall")], summarize=overall), rows)
    assert found["overall"].low is None
    assert found["overall"].value == pytest.approx(0.6)


def test_a_pooled_measure_gets_all_its_rows() -> None:
    median = Measure(name="median", pooled=True, value=lambda rows: np.median(rows[:, 0]))
    values = [NormalDist().inv_cdf((index + 0.5) / 101) for index in range(101)]
    rows = [(str(index), Score(measure="median", counts=(value,))) for index, value in enumerate(values)]
    value, low, high = known(estimate(Analysis([median]), rows)["median"])
    half = 1.96 * math.sqrt(math.pi / 2 / 101)
    assert value == pytest.approx(0, abs=1e-9)
    assert (high - low) / 2 == pytest.approx(half, rel=0.2)


def test_names_do_not_move_the_interval_of_a_pooled_measure() -> None:
    median = Measure(name="median", pooled=True, value=lambda rows: np.median(rows[:, 0]))
    values = np.random.default_rng(3).uniform(0, 1, 80).tolist()

    def named(names: list[int]) -> list[Row]:
        pages = [
            (f"page {name}", values[place : place + 2]) for name, place in zip(names, range(0, 80, 2), strict=True)
        ]
        return [(page, Score(measure="median", counts=(value, 1.0))) for page, pair in pages for value in pair]

    found = [
        estimate(Analysis([median], draws=200), named(names)) for names in (list(range(40)), list(range(40))[::-1])
    ]
    assert found[0] == found[1]


def test_a_pooled_mean_has_the_interval_of_the_summed_one() -> None:
    rows = [(str(index // 3), Score(measure="mean", counts=(index % 7 / 7, 1.0))) for index in range(90)]
    pooled = Measure(name="mean", pooled=True, value=lambda rows: rows[:, 0].sum() / rows[:, 1].sum())
    slow, fast = (known(estimate(Analysis([measure], draws=500), rows)["mean"]) for measure in (pooled, MEAN))
    assert slow == pytest.approx(fast, abs=0.005)


def test_counts_that_do_not_fit_are_refused_by_name() -> None:
    uneven: list[Row] = [("a", Score(measure="mean", counts=(1.0, 2.0))), ("b", Score(measure="mean", counts=(1.0,)))]
    with pytest.raises(LoupeError, match="'mean' have 1 and 2 counts"):
        estimate(Analysis([MEAN]), uneven)
    with pytest.raises(ValueError, match="'mean' needs two counts"):
        estimate(Analysis([MEAN]), [("a", Score(measure="mean", counts=(1.0,)))])
    with pytest.raises(ValueError, match="pooled and needs a `value`"):
        estimate(Analysis([Measure(name="mean", pooled=True)]), mean_rows([1.0]))


# Table 26.10 of Abramowitz & Stegun.
@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045), (120, 1.980), (100_000, 1.960)],
)
def test_quantiles_of_student_are_those_of_the_tables(degrees: int, expected: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=6e-4)
    assert t_quantile(0.025, degrees) == pytest.approx(-expected, abs=6e-4)


@given(st.integers(1, 60), st.floats(-8, 8))
def test_the_distribution_of_student_is_the_integral_of_its_density(degrees: int, t: float) -> None:
    grid = np.linspace(0, t, 4001)
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    density = scale * (1 + grid**2 / degrees) ** (-(degrees + 1) / 2)
    area = float(np.sum(density[1:] + density[:-1])) / 2 * (t / 4000)
    assert t_cumulative(t, degrees) == pytest.approx(0.5 + area, abs=1e-5)


@given(st.integers(1, 2000), st.floats(0.001, 0.999))
def test_quantiles_invert_the_distribution(degrees: int, probability: float) -> None:
    assert t_cumulative(t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-5)


def test_a_thousand_pages_and_ten_measures_take_well_under_a_second() -> None:
    generator = np.random.default_rng(0)
    table = generator.random((1355, 10)).tolist()
    rows = [(str(p), Score(measure=str(m), counts=(x, 1.0))) for p, row in enumerate(table) for m, x in enumerate(row)]
    measures = [Measure(name=str(index)) for index in range(10)]
    estimate(Analysis(measures, draws=10), rows)
    start = process_time()
    estimate(Analysis(measures), rows)
    assert process_time() - start < 1.0


def test_memory_does_not_grow_with_clusters_times_draws() -> None:
    rows = mean_rows(np.random.default_rng(0).random(25_000).tolist())
    tracemalloc.start()
    try:
        estimate(Analysis([MEAN], draws=400), rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(("right", "pages"), [(29, 30), (1, 12), (5, 6), (0, 8), (150, 200)])
def test_right_and_wrong_answers_have_the_exact_interval_whatever_the_pages_are_called(right: int, pages: int) -> None:
    rows = mean_rows([1.0] * right + [0.0] * (pages - right))
    first, second = (
        known(estimate(Analysis([MEAN], seed=seed), each)["mean"]) for seed, each in ((0, rows), (7, rows[::-1]))
    )
    exact = beta.ppf(0.025, right, pages - right + 1) if right else 0.0, beta.ppf(0.975, right + 1, pages - right)
    assert first == pytest.approx(second)
    assert first[1:] == pytest.approx(np.nan_to_num(exact, nan=1.0), abs=0.002)


@pytest.mark.parametrize("pages", [12, 30, 300])
def test_other_names_change_no_interval_and_another_seed_changes_it_little(pages: int) -> None:
    values = (1 - np.random.default_rng(pages).exponential(0.1, pages) ** 2).tolist()
    ends = [known(estimate(Analysis([MEAN], seed=seed), mean_rows(values))["mean"])[1:] for seed in range(8)]
    renamed = known(estimate(Analysis([MEAN]), mean_rows(values[::-1]))["mean"])[1:]
    low, high = np.array(ends).T
    assert renamed == pytest.approx(ends[0])
    assert max(np.ptp(low), np.ptp(high)) <= 0.001 * float(np.mean(high - low))


@pytest.mark.parametrize("pages", [20, 60, 400])
def test_another_seed_hardly_moves_a_ratio_a_composite_or_a_pooled_measure_that_few_pages_carry(pages: int) -> None:
    chance = np.random.default_rng(pages)
    length = np.round(chance.lognormal(7, 0.8, pages))
    edits = np.where(chance.random(pages) < 0.1, length, chance.binomial(length.astype(int), 0.01))
    values = chance.beta(6, 1, pages)
    rows = [
        (str(page), Score(measure=name, counts=(float(first), float(second))))
        for page in range(pages)
        for name, first, second in (("cer", edits[page], length[page]), ("mean", values[page], 1.0))
    ]
    pooled = Measure(name="pooled", pooled=True, value=lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()))
    measures = [Measure(name="cer", higher_is_better=False), MEAN, Measure(name="both")]
    joined = Analysis(measures, summarize=lambda values: {"both": (1 - values["cer"]) * values["mean"]})
    for analysis, own, most in (
        (joined, rows, 0.05),
        (Analysis([pooled]), [(page, Score(measure="pooled", counts=each.counts)) for page, each in rows[::2]], 0.15),
    ):
        found = [estimate(replace(analysis, seed=seed), own) for seed in range(5)]
        for name in found[0]:
            low, high = np.array([known(each[name])[1:] for each in found]).T
            assert max(np.ptp(low), np.ptp(high)) <= most * float(np.mean(high - low)), name
