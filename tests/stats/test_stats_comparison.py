"""Paired comparison, Holm's correction, and ranks that ties share."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, binomtest, permutation_test

from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare, holm
from loupe.stats.comparison import rows_of as clustered
from loupe.stats.estimates import estimate
from loupe.stats.ranks import standings
from loupe.stats.student import t_cumulative
from loupe.types import Measure, SampleScores, Score, Values

MEAN = Measure(name="mean")
ERRORS = Measure(name="mean", higher_is_better=False)


def page(sample: str, value: float, measure: str = "mean", group: str = "") -> SampleScores:
    return SampleScores(sample=sample, group=group, scores=[Score(measure=measure, counts=(value, 1.0))])


def rows_of(values: list[float], measure: str = "mean") -> list[SampleScores]:
    return [page(f"page {index}", value, measure) for index, value in enumerate(values)]


def noise(seed: int, n: int = 60, spread: float = 0.1) -> list[float]:
    found: list[float] = np.random.default_rng(seed).normal(0, spread, n).tolist()
    return found


def plus(values: list[float], others: list[float], shift: float = 0.0) -> list[float]:
    return [a + b + shift for a, b in zip(values, others, strict=True)]


def width(low: float | None, high: float | None) -> float:
    assert low is not None and high is not None
    return high - low


def ranks(runs: dict[str, list[SampleScores]], measures: list[Measure], name: str) -> dict[str, int | None]:
    return standings(Analysis(measures, headline=name), runs).ranks


def probability(found: Difference) -> float:
    assert found.p is not None
    return found.p


@pytest.mark.parametrize("pages", [6, 12, 30, 100])
def test_identical_runs_do_not_differ_and_claim_no_certainty_about_it(pages: int) -> None:
    rows = rows_of(noise(1, pages))
    found = compare(Analysis([MEAN], headline="mean"), rows, rows)["mean"]
    assert (found.difference, found.p, found.p_holm, found.shared) == (0.0, 1.0, 1.0, pages)
    # The exact bound on the share of pages that could be lost, or won, altogether.
    bound = beta.ppf(0.975, 1, pages)
    assert (found.low, found.high) == pytest.approx((-bound, bound), rel=0.006)
    assert (found.low, found.high) == (found.worst_low, found.worst_high)


@pytest.mark.parametrize(("pages", "p"), [(6, 2 / 64), (12, 2 / 2**12), (60, 1 / 2001)])
def test_runs_that_differ_alike_on_every_page_are_as_sure_as_their_number(pages: int, p: float) -> None:
    found = compare(Analysis([MEAN]), rows_of([1.0] * pages), rows_of([0.0] * pages))["mean"]
    assert found.low is not None and (found.difference, found.p) == (1.0, p) and found.high == pytest.approx(1)
    # Pages lost altogether count twice here: as not won, and as lost.
    assert found.low == pytest.approx(1 - 2 * beta.ppf(0.975, 1, pages), abs=0.04)


def right_or_wrong(only_a: int, only_b: int, pages: int) -> tuple[list[SampleScores], list[SampleScores]]:
    """Pages that only one of two runs gets right; the other pages are right in both."""
    a = [0.0] * only_b + [1.0] * (pages - only_b)
    return rows_of(a), rows_of([1.0] * only_b + [0.0] * only_a + [1.0] * (pages - only_a - only_b))


@pytest.mark.parametrize(("only_a", "only_b", "pages"), [(1, 0, 30), (5, 0, 12), (6, 0, 30), (8, 1, 12), (9, 3, 100)])
def test_p_of_right_and_wrong_answers_is_that_of_mcnemar_and_the_interval_says_the_same(
    only_a: int, only_b: int, pages: int
) -> None:
    found = compare(Analysis([MEAN]), *right_or_wrong(only_a, only_b, pages))["mean"]
    assert found.p == pytest.approx(binomtest(only_a, only_a + only_b).pvalue)
    assert found.low is not None and found.high is not None and found.p is not None
    assert (found.low > 0) == (found.p < 0.05)
    # Neither end claims more than the score interval of T. Tango (Statistics in Medicine 17, 1998) by much.
    low, high = tango(only_a, only_b, pages)
    assert found.low <= max(low, 0.0) + 0.02 and high - 0.02 <= found.high <= high + 0.1


def tango(only_a: int, only_b: int, pages: int) -> tuple[float, float]:
    """The ends at which the score test of the difference of two paired shares reaches 1.96."""

    def z(true: float) -> float:
        first = 2 * pages
        second = -only_a - only_b + (2 * pages - only_a + only_b) * true
        share = (math.sqrt(second**2 + 4 * first * only_b * true * (1 - true)) - second) / (2 * first)
        return (only_a - only_b - pages * true) / math.sqrt(pages * (2 * share + true * (1 - true)))

    middle = (only_a - only_b) / pages
    return (
        brentq(lambda true: z(true) - 1.959964, -1 + 1e-9, middle - 1e-9),
        brentq(lambda true: z(true) + 1.959964, middle + 1e-9, 1 - 1e-9),
    )


@given(st.lists(st.sampled_from([-0.5, -0.1, 0.0, 0.0, 0.0, 0.1, 0.3]), min_size=6, max_size=25), st.randoms())
@settings(deadline=None, max_examples=30)
def test_other_names_for_the_pages_change_nothing(apart: list[float], chance: random.Random) -> None:
    names = chance.sample(range(100), len(apart))
    plain = compare(Analysis([MEAN]), rows_of([0.5 + each for each in apart]), rows_of([0.5] * len(apart)))["mean"]
    renamed = [
        [page(f"{name}", 0.5 + factor * each) for name, each in zip(names, apart, strict=True)] for factor in (1, 0)
    ]
    found = compare(Analysis([MEAN]), *renamed)["mean"]
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=1e-9) and found.p == plain.p


MEDIAN = Measure(name="mean", pooled=True, value=lambda rows: np.median(rows[:, 0]))


@pytest.mark.parametrize("differing", [0, 1])
def test_a_pooled_measure_of_many_pages_that_hardly_differ_has_bounds(differing: int) -> None:
    """Also a composite which does not move with a part whose scale is unknown."""

    def total(values: Values) -> Values:
        return {"total": values["mean"] + 0 * values["size"]}

    size = Measure(name="size", unit="number", pooled=True, value=lambda rows: rows[:, 0].max())
    values = np.random.default_rng(0).uniform(0, 1, 600).tolist()
    runs = [
        [*rows_of(each), *rows_of([7.0] * 600, "size")] for each in ([0.0] * differing + values[differing:], values)
    ]
    found = compare(Analysis([MEDIAN, size, Measure(name="total")], total, headline="total", draws=100), *runs)["total"]
    assert found.worst_low is not None and found.worst_high is not None
    assert -0.02 < found.worst_low < found.worst_high < 0.02 and found.p == 1.0


def test_other_names_change_no_digit_of_a_pooled_comparison() -> None:
    """Three pages each, whose sums are the same."""
    values = [(0.5, 0.5, 0.5), (0.1, 0.5, 0.9), (0.3, 0.5, 0.7), (0.0, 0.6, 0.9)] * 4
    names = random.Random(2).sample(range(16), 16)
    found = []
    for named in (range(16), names):
        runs = [
            [page(f"{name}.{place}", each * factor, group=f"{name}") for name, three in zip(named, values, strict=True)
             for place, each in enumerate(three)]
            for factor in (1, 0.5)
        ]  # fmt: skip
        found.append(compare(Analysis([MEDIAN], draws=200), *runs))
    assert found[0] == found[1]


def test_a_page_that_outweighs_all_others_leaves_the_scale_nowhere_and_forecasts_nothing() -> None:
    runs = [
        [
            SampleScores(sample=f"{i}", scores=[Score(measure="mean", counts=(lost if i else won, 1.0 if i else 1e3))])
            for i in range(20)
        ]
        for lost, won in ((1.0, 1e3), (1.0, 0.0))
    ]
    found = compare(Analysis([MEAN], headline="mean"), *runs)["mean"]
    assert found.difference == pytest.approx(1000 / 1019) and found.high == found.worst_high == 1.0
    assert (found.p, found.detectable, found.needed) == (1.0, None, None)


@pytest.mark.parametrize("pooled", [False, True])
def test_p_of_at_most_fifteen_pages_is_that_of_all_exchanges(pooled: bool) -> None:
    first, second = (np.round(np.random.default_rng(seed).normal(0.5, 0.1, 13), 2) for seed in (3, 4))
    first += 0.06
    measure = MEDIAN if pooled else MEAN
    middle = np.median if pooled else np.mean
    expected = permutation_test(
        (first, second),
        lambda one, other, axis: middle(one, axis=axis) - middle(other, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    runs = rows_of(first.tolist()), rows_of(second.tolist())
    found = compare(Analysis([measure], headline="mean"), *runs)["mean"]
    assert found.p == pytest.approx(expected.pvalue, abs=2e-4)


@pytest.mark.parametrize(("largest", "added"), [(3.0, 3.0), (8.0, 9.0)])
def test_the_gate_adds_a_document_as_large_as_the_largest_one_or_two(largest: float, added: float) -> None:
    """Else a loss that falls on long documents passes too often where none of them was read."""
    pages = [largest] + [1.0] * 7
    runs = [
        [
            SampleScores(sample=f"{number}", scores=[Score(measure="mean", counts=(share * size, size))])
            for number, size in enumerate(pages)
        ]
        for share in (0.9, 0.9)
    ]
    found = compare(Analysis([MEAN], headline="mean"), *runs)["mean"]
    assert found.low is not None and found.worst_low is not None
    # Gaffke: the added one has weight 3 E₉ against 3 E₁ + E₂ + … + E₈; draws are the oracle.
    drawn = np.random.default_rng(0).exponential(size=(400_000, 9))
    weight = drawn[:, 8] * added
    expected = np.quantile(weight / (weight + drawn[:, :8] @ pages), 0.975)
    assert -found.worst_low == pytest.approx(expected, abs=0.01) and found.worst_low < found.low - 0.05


def test_holm_may_call_clear_what_the_interval_of_bonferroni_does_not_and_it_ends_at_zero_then() -> None:
    """All other pairs are far apart, so that the last one is tested at 5 %."""
    shifts = [0.0, 0.035, 1.0, 2.0, 3.0]
    runs = {f"{seed}": rows_of(plus(noise(40 + seed, 40), [0.0] * 40, shift)) for seed, shift in enumerate(shifts)}
    pairs = standings(Analysis([MEAN], headline="mean"), runs).pairs
    ends = [found["mean"] for found in pairs.values()]
    assert all(one.low is not None and one.p_holm is not None for one in ends)
    assert [(one.low or 0) > 0 for one in ends] == [(one.p_holm or 1) < 0.05 for one in ends] == [True] * 10
    last = pairs["1", "0"]["mean"]
    assert last.p == last.p_holm and (last.p or 0) > 0.005 and (last.low or 1) < 1e-6


def test_the_intervals_of_all_pairs_are_those_of_bonferroni() -> None:
    runs = {f"{seed}": rows_of(noise(40 + seed, 40)) for seed in range(5)}
    found = standings(Analysis([MEAN], headline="mean"), runs).pairs["1", "0"]["mean"]
    alone = compare(Analysis([MEAN], headline="mean"), runs["1"], runs["0"])["mean"]
    # Student's factors for 39 degrees of freedom, at 0.5 % and 5 %.
    assert width(found.low, found.high) / width(alone.low, alone.high) == pytest.approx(2.976 / 2.023, rel=0.08)


def test_only_pages_that_both_have_read_are_compared_not_whole_documents() -> None:
    whole = [page(f"{document}/{number}", number / 10, group=document) for document in "abcdefg" for number in range(4)]
    found = compare(Analysis([MEAN]), whole, whole[:26])["mean"]
    assert (found.value_a, found.difference, found.p, found.shared) == (found.value_b, 0.0, 1.0, 7)


def test_a_longer_run_is_not_ranked_below_the_same_answers_on_fewer_pages() -> None:
    easy = [page(f"{document}/0", 0.9, group=document) for document in map(str, range(20))]
    hard = [page(f"{document}/1", 0.1, group=document) for document in map(str, range(20))]
    assert ranks({"all": easy + hard, "some": easy}, [MEAN], "mean") == {"some": 1, "all": 1}


def test_pairing_is_tighter_than_two_intervals() -> None:
    pages = noise(2, spread=0.3)
    a, b = rows_of(plus(pages, noise(3, spread=0.02), 0.02)), rows_of(pages)
    paired = compare(Analysis([MEAN]), a, b)["mean"]
    alone = estimate(Analysis([MEAN]), clustered(a))["mean"]
    assert width(paired.low, paired.high) < 0.2 * width(alone.low, alone.high)
    assert paired.p_holm is not None and paired.p_holm < 0.05


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.04])
def test_the_p_value_is_that_of_the_paired_t_test(shift: float) -> None:
    pages, errors = noise(4), noise(5)
    found = compare(Analysis([MEAN]), rows_of(plus(pages, errors, shift)), rows_of(pages))["mean"]
    differences = np.array(errors) + shift
    t = float(differences.mean() / differences.std(ddof=1)) * math.sqrt(60)
    assert found.difference == pytest.approx(float(differences.mean()))
    assert found.p == pytest.approx(2 * t_cumulative(-abs(t), 59), rel=0.3, abs=0.03)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40), st.floats(-0.3, 0.3))
def test_swapping_the_runs_turns_the_difference_round(values: list[float], shift: float) -> None:
    a, b = rows_of(values), rows_of([shift * index % 1 for index in range(len(values))])
    there, back = compare(Analysis([MEAN], draws=200), a, b)["mean"], compare(Analysis([MEAN], draws=200), b, a)["mean"]
    assert there.difference == -back.difference  # type: ignore[operator]
    if there.low is None or back.high is None:
        assert there.low is there.high is back.low is back.high is None
    else:
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low))  # type: ignore[operator]
    assert there.p == pytest.approx(back.p)


def test_a_great_difference_on_a_dozen_pages_is_found_among_many_measures() -> None:
    """The bootstrap's tails alone would give 0.26 here: a page image that one engine cannot read at all."""
    good, bad = [0.99, 1.0, 0.98, 1.0, 0.97, 1.0, 0.99, 1.0, 0.96, 1.0, 1.0, 1.0], [0.0] * 9 + [1.0] * 3
    measures = [Measure(name=f"m{index}") for index in range(9)]
    rows_a = [row for measure in measures for row in rows_of(good, measure.name)]
    rows_b = [row for measure in measures for row in rows_of(bad, measure.name)]
    assert all((found.p_holm or 1) < 0.05 for found in compare(Analysis(measures), rows_a, rows_b).values())


@pytest.mark.parametrize("seed", range(3))
def test_equal_engines_are_called_different_no_oftener_than_stated(seed: int) -> None:
    generator = np.random.default_rng(seed)
    alarms = 0
    for _ in range(200):
        pages = generator.normal(0.8, 0.1, 12)
        a, b = (pages + generator.exponential(0.05, 12) for _ in range(2))
        found = compare(Analysis([MEAN], draws=200), rows_of(a.tolist()), rows_of(b.tolist()))
        alarms += probability(found["mean"]) < 0.05
    assert alarms <= 200 * 0.05 + 3 * (200 * 0.05 * 0.95) ** 0.5


def test_a_p_value_is_never_zero() -> None:
    found = compare(Analysis([MEAN]), rows_of(plus([5.0] * 60, noise(6))), rows_of([0.0] * 60))["mean"]
    assert 0 < probability(found) <= 0.005


@pytest.mark.parametrize("pages", [2, 5])
def test_a_few_pages_prove_nothing_and_rank_nobody(pages: int) -> None:
    good, bad = rows_of([0.9, 0.8, 0.9, 0.7, 0.8][:pages]), rows_of([0.1, 0.2, 0.1, 0.3, 0.0][:pages])
    assert compare(Analysis([MEAN]), good, bad)["mean"].p is None
    assert ranks({"good": good, "bad": bad}, [MEAN], "mean") == {"good": None, "bad": None}


def test_only_shared_clusters_are_compared() -> None:
    a, b = rows_of([0.5, 0.6, 0.7, 0.8]), [*rows_of([0.1, 0.2, 0.3]), page("elsewhere", 1.0)]
    found = compare(Analysis([MEAN]), a, b)["mean"]
    assert found.shared == 3
    assert (found.value_a, found.value_b, found.difference) == pytest.approx((0.6, 0.2, 0.4))


def test_runs_without_a_common_cluster_are_not_compared() -> None:
    found = compare(Analysis([MEAN]), rows_of([0.5]), [page("other", 0.5)])["mean"]
    assert found == Difference(shared=0)


def test_a_single_shared_cluster_has_a_difference_and_no_more() -> None:
    found = compare(Analysis([MEAN]), rows_of([0.5]), rows_of([0.25, 0.3]))["mean"]
    alone = Difference(value_a=0.5, value_b=0.25, difference=0.25, shared=1, interval="none: too few clusters")
    assert found == alone


def test_a_measure_that_one_run_lacks_is_not_counted_by_holm() -> None:
    measures = [MEAN, Measure(name="cdm")]
    a, b = rows_of(noise(7)), rows_of(noise(8))
    found = compare(Analysis(measures), a + rows_of(noise(9), "cdm"), b)
    assert found["cdm"].p is None and found["cdm"].value_b is None and found["cdm"].value_a is not None
    assert found["mean"].p_holm == found["mean"].p


def test_composites_are_compared_too() -> None:
    def half(values: Values) -> Values:
        return {"half": values["mean"] / 2}

    a, b = rows_of(plus(noise(10), noise(11), 0.3)), rows_of(noise(10))
    found = compare(Analysis([MEAN, Measure(name="half")], summarize=half), a, b)
    assert found["half"].difference == pytest.approx(found["mean"].difference / 2)  # type: ignore[operator]
    assert found["half"].p == found["mean"].p
    assert found["half"].p_holm == pytest.approx(2 * probability(found["mean"]))
    asked_first = compare(Analysis([MEAN, Measure(name="half")], headline="half", summarize=half), a, b)
    assert asked_first["half"].p_holm == asked_first["mean"].p_holm == found["half"].p


def test_the_same_figures_under_two_names_are_one_test() -> None:
    def twice(values: Values) -> Values:
        return {"again": values["mean"]}

    measures = [MEAN, Measure(name="again"), Measure(name="other")]
    a, b = plus(noise(10), noise(11), 0.03), noise(10)
    rows = rows_of(a) + rows_of(noise(12), "other"), rows_of(b) + rows_of(noise(13), "other")
    found = compare(Analysis(measures, summarize=twice), *rows)
    assert found["again"] == found["mean"]
    one, two = sorted({probability(found["mean"]), probability(found["other"])})
    assert sorted({found["mean"].p_holm, found["other"].p_holm}) == [2 * one, max(2 * one, two)]  # type: ignore[type-var]
    # The headline is the question that was asked, and so is what is the same.
    first = compare(Analysis(measures, headline="again", summarize=twice), *rows)
    assert all(each.p_holm == each.p for each in first.values())


@given(st.lists(st.floats(-0.05, 0.05), min_size=2, max_size=4), st.integers(3, 12))
@settings(deadline=None, max_examples=25)
def test_a_rank_counts_the_comparisons_that_are_shown_as_lost(shifts: list[float], pages: int) -> None:
    runs = {
        f"run {place}": rows_of(plus(noise(30, pages), noise(31 + place, pages, 0.02), shift))
        for place, shift in enumerate(shifts)
    }
    found = standings(Analysis([MEAN], headline="mean", draws=200), runs)
    assert found.untold == (set(found.ranks.values()) == {None}) == (pages < 6)
    clear = {pair: one for pair, each in found.pairs.items() if ((one := each["mean"]).p_holm or 1.0) < 0.05}
    worse = [(earlier if (one.difference or 0) > 0 else later) for (later, earlier), one in clear.items()]
    assert all(found.ranks[run] == 1 + worse.count(run) for run in runs) or found.untold


def test_where_a_composite_stands_on_one_page_nobody_has_a_rank() -> None:
    """As on nine pages with one formula: a value each, no interval, and nothing to tell."""

    def overall(values: Values) -> Values:
        return {"overall": (values["mean"] + values["formula"]) / 2}

    measures = [Measure(name="overall"), MEAN, Measure(name="formula")]
    good = [*rows_of([0.9] * 9), page("page 0", 1.0, "formula")]
    bad = [*rows_of([0.1] * 9), page("page 0", 0.0, "formula")]
    found = standings(Analysis(measures, headline="overall", summarize=overall), {"good": good, "bad": bad})
    assert found.ranks == {"good": None, "bad": None} and found.untold
    assert found.pairs["bad", "good"]["overall"].p is None


def test_holm_is_the_example_worked_by_hand() -> None:
    # Sorted 0.005, 0.011, 0.02, 0.04, 0.13, times 5, 4, 3, 2, 1, and never below the one before.
    assert holm([0.02, 0.005, 0.13, 0.011, 0.04]) == pytest.approx([0.06, 0.025, 0.13, 0.044, 0.08])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_lies_between_the_raw_value_and_bonferroni(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= min(1.0, len(p_values) * p) for p, c in zip(p_values, corrected, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


def test_engines_that_cannot_be_told_apart_share_a_rank() -> None:
    pages = noise(12, spread=0.2)
    runs = {
        "worst": rows_of(plus(pages, noise(13), -0.5)),
        "good": rows_of(plus(pages, noise(14), 0.0)),
        "as good": rows_of(plus(pages, noise(15), 0.01)),
        "best": rows_of(plus(pages, noise(16), 0.5)),
    }
    found = ranks(runs, [MEAN], "mean")
    assert found == {"best": 1, "good": 2, "as good": 2, "worst": 4}
    assert next(iter(found)) == "best" and list(found)[-1] == "worst"


def test_twenty_engines_that_differ_plainly_have_twenty_ranks() -> None:
    pages = noise(21, 20, 0.2)
    runs = {f"{place}": rows_of(plus(pages, noise(22 + place, 20, 0.01), -0.1 * place)) for place in range(20)}
    assert list(ranks(runs, [MEAN], "mean").values()) == list(range(1, 21))


def test_lower_errors_rank_first() -> None:
    runs = {"more": rows_of(plus(noise(17), [0.5] * 60)), "fewer": rows_of(noise(18))}
    assert list(ranks(runs, [ERRORS], "mean").items()) == [("fewer", 1), ("more", 2)]


def test_a_run_without_a_value_comes_last_and_has_no_rank() -> None:
    runs = {"none": rows_of(noise(19), "other"), "some": rows_of(noise(20))}
    assert list(ranks(runs, [MEAN], "mean").items()) == [("some", 1), ("none", None)]
    assert ranks({"alone": rows_of([0.5])}, [MEAN], "mean") == {"alone": 1}


def test_runs_over_different_pages_are_ranked_by_what_each_pair_shares() -> None:
    pages = noise(21, spread=0.2)
    runs = {
        "all": rows_of(plus(pages, [0.5] * 60)),
        "first half": rows_of(plus(pages, noise(22, spread=0.01)))[:30],
        "other pages": [page(f"other {index}", value) for index, value in enumerate(pages)],
    }
    assert list(ranks(runs, [MEAN], "mean").items()) == [("all", 1), ("first half", 2), ("other pages", None)]


def test_a_run_without_an_answer_or_too_short_to_be_tested_has_no_rank_and_stands_last() -> None:
    pages = noise(23, 19, 0.2)
    runs = {
        "bad": [msgspec.structs.replace(row, outcome="error") for row in rows_of([0.0] * 5)],
        "short": rows_of([9.0] * 3),
        "half": rows_of(plus(pages[:12], [0.1] * 12)),
        "whole": rows_of(plus(pages, noise(24, 19, 0.01), 2.0)),
    }
    found = standings(Analysis([MEAN], headline="mean"), runs)
    assert list(found.ranks.items()) == [("whole", 1), ("half", 2), ("short", None), ("bad", None)]
    assert not found.untold and found.failed == {"bad"}
    alone = standings(Analysis([MEAN], headline="mean"), {name: runs[name] for name in ("bad", "half")})
    assert alone.ranks == {"half": 1, "bad": None} and not alone.untold


def test_runs_that_share_a_rank_stand_by_their_values_after_all_that_are_ahead() -> None:
    """`few` has the best value over six samples, on which three are clearly better than it."""
    pages = noise(25, 40, 0.2)
    pages[6:] = [value - 3 for value in pages[6:]]
    runs = {
        "few": rows_of(pages[:6]),
        "less": rows_of(plus(pages, noise(26, 40, 0.01), 0.5)),
        "more": rows_of(plus(pages, noise(26, 40, 0.01), 0.501)),
    }
    found = standings(Analysis([MEAN], headline="mean"), runs).ranks
    assert [*found.values()] == sorted(rank or 9 for rank in found.values())


def test_a_pair_can_be_asked_either_way_round() -> None:
    runs = {"a": rows_of(noise(27)), "b": rows_of(plus(noise(27), noise(28), 0.4))}
    found = standings(Analysis([MEAN], headline="mean"), runs)
    one, other = found.minus("b", "a")["mean"], found.minus("a", "b")["mean"]
    assert one == found.pairs["b", "a"]["mean"] == other.reversed()
    assert (other.difference, other.low, other.high) == (-(one.difference or 0), -(one.high or 0), -(one.low or 0))
    assert (other.value_a, other.p_holm) == (one.value_b, one.p_holm)
