"""Figures read off curves: known answers, what must not change them, and how often their intervals hold the truth."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics import rate_of_sums
from loupe.stats.curves import Curve, Rung, area, curve, half_loss, limit, points, reliance
from loupe.types import Measure

CER = Measure(name="cer", higher_is_better=False, value=rate_of_sums)
PRECISION = Measure(name="precision")
X_HEIGHTS = (24.0, 16.0, 12.0, 10.0, 8.0, 7.0, 6.0, 5.0)


def alike(rates: Sequence[float], places: Sequence[float], bases: int = 12, jitter: float = 0.0) -> list[Rung]:
    """Base pages that have about the same rates on all rungs, 1,000 characters each; on average exactly these."""
    return [
        (f"base {base}", place, (1000 * rate * (1 + jitter * (1 if base % 2 else -1)), 1000.0))
        for base in range(bases)
        for rate, place in zip(rates, places, strict=True)
    ]


def test_points_are_the_rates_of_the_rungs_with_their_intervals() -> None:
    found = points(curve(CER, alike((0.1, 0.2, 0.4), (0, 1, 2), jitter=0.5), (0, 1, 2)))
    assert [point.value for point in found] == pytest.approx([0.1, 0.2, 0.4])
    for point in found:
        assert point.value is not None and point.low is not None and point.high is not None
        half = 0.5 * point.value * 2.201 / math.sqrt(11)  # Student's t of 12 base pages, ± half of the rate each
        assert (point.high - point.low) / 2 == pytest.approx(half, rel=0.1)
        assert point.n == 12


def test_reliance_is_paired_by_base_page() -> None:
    """Base pages of very different difficulty that all lose two points: nothing is uncertain about the loss."""
    rungs = [
        (f"{base}", float(rung), (1000 * (0.05 * base + 0.02 * rung), 1000.0)) for base in range(9) for rung in (0, 1)
    ]
    natural, false = reliance(curve(CER, rungs, (0, 1)))
    assert natural.value == 0
    assert false.value == pytest.approx(0.02) and false.low is None
    wider = reliance(curve(CER, [*rungs, ("odd", 0.0, (0.0, 1000.0)), ("odd", 1.0, (500.0, 1000.0))], (0, 1)))[1]
    assert wider.low is not None and wider.high is not None and wider.low > 0.0199 and wider.high < 0.3


def test_the_legibility_limit_lies_between_rungs() -> None:
    rates = (0.01, 0.01, 0.01, 0.02, 0.03, 0.07, 0.3, 0.8)
    found = limit(curve(CER, alike(rates, X_HEIGHTS, jitter=0.4), X_HEIGHTS), 0.05)
    assert found.where == "within" and found.value == pytest.approx(7.5)
    assert found.low is not None and found.high is not None
    assert 7 < found.low < 7.5 < found.high < 8
    assert (found.easiest, found.hardest, found.n) == (24, 5, 12)


def test_a_limit_off_the_ladder_says_on_which_side() -> None:
    good = limit(curve(CER, alike([0.01] * 8, X_HEIGHTS, jitter=0.2), X_HEIGHTS), 0.05)
    assert (good.where, good.value, good.low, good.high) == ("never", None, None, None)
    bad = limit(curve(CER, alike([0.3] * 8, X_HEIGHTS, jitter=0.2), X_HEIGHTS), 0.05)
    assert (bad.where, bad.value, bad.low, bad.high) == ("always", None, None, None)


def test_an_end_beyond_the_ladder_is_left_open() -> None:
    """The last rung is near the level: some draws cross before it, others never do."""
    found = limit(curve(CER, alike((0.01,) * 6 + (0.02, 0.052), X_HEIGHTS, jitter=0.9), X_HEIGHTS), 0.05)
    assert found.where == "within" and found.value is not None and 5 < found.value < 5.2
    assert found.low is None and found.high is not None and 5.2 < found.high < 6


def test_a_dip_is_levelled_before_the_crossing_is_read() -> None:
    """0.06 and 0.02 in the middle are one level of 0.04 of a curve that never falls."""
    found = limit(curve(CER, alike((0.01, 0.06, 0.02, 0.06), (1, 2, 3, 4)), (1, 2, 3, 4)), 0.05)
    assert found.value == pytest.approx(3.5)


def test_a_measure_of_what_is_right_is_read_from_the_other_side() -> None:
    rungs = alike((0.99, 0.97, 0.93, 0.5), (1, 2, 3, 4))
    assert limit(curve(PRECISION, rungs, (1, 2, 3, 4)), 0.95).value == pytest.approx(2.5)


def test_area_is_the_share_of_the_square_under_the_accuracy() -> None:
    assert area(curve(CER, alike([0.0] * 6, range(6)), range(6))).value == 1
    assert area(curve(CER, alike([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], range(6)), range(6))).value == pytest.approx(0.5)
    assert area(curve(CER, alike([0.0, 3.0], range(2)), range(2))).value == pytest.approx(
        0.5
    )  # a CER of 3 is not worse


def test_half_of_the_accuracy_is_half_of_the_clean_one() -> None:
    rates = (0.2, 0.3, 0.4, 0.7, 0.9, 1.0)  # 0.8 is right on the clean page; 0.4 between the rungs 2 and 3
    assert half_loss(curve(CER, alike(rates, range(6)), range(6))).value == pytest.approx(2 + 2 / 3)
    assert half_loss(curve(CER, alike([0.2] * 6, range(6)), range(6))).where == "never"
    assert half_loss(curve(CER, alike([1.0] * 6, range(6)), range(6))).where == "unknown"


def test_density_collapses_between_places_in_even_ratios() -> None:
    places = (300, 1200, 4800)
    found = half_loss(curve(PRECISION, alike((0.9, 0.9, 0.0), places), places), log=True)
    assert found.value == pytest.approx(math.sqrt(1200 * 4800))


def test_a_base_page_counts_on_the_rungs_that_it_has() -> None:
    """Three rungs of which each base page has the first and one other: the usual ladder of a small run."""
    rungs = [
        (f"{base}", float(place), (1000 * rate * (1 + 0.1 * (base // 2 % 2)), 1000.0))
        for base in range(8)
        for place, rate in ((0, 0.1), (1 + base % 2, 0.2 * (1 + base % 2)))
    ]
    found = curve(CER, rungs, (0, 1, 2))
    assert found.bases == (8, 4, 4) and found.weakest == 4
    assert [point.value for point in points(found)] == pytest.approx([0.105, 0.21, 0.42])
    assert [point.n for point in points(found)] == [8, 4, 4]
    assert all(point.low is not None for point in points(found))
    assert area(found).value == pytest.approx((0.895 + 2 * 0.79 + 0.58) / 4)


def test_a_rung_that_nobody_has_is_unknown() -> None:
    found = curve(CER, [("one", 0, (0.0, 10.0)), ("two", 0, (1.0, 10.0)), ("one", 9, (1.0, 2.0))], (0, 1))
    assert [point.value for point in points(found)] == [0.05, None]
    assert found.bases == (2, 0)


def test_nothing_read_is_unknown() -> None:
    found = curve(CER, [], (0, 1))
    assert found.bases == (0, 0) and points(found)[0].value is None
    assert limit(found, 0.05).where == half_loss(found).where == "unknown"
    assert area(found).value is None


def test_one_base_page_has_no_interval() -> None:
    found = curve(CER, alike((0.1, 0.9), (0, 1), bases=1), (0, 1))
    assert points(found)[0].low is None and half_loss(found).low is None


@pytest.mark.parametrize("places", [(1,), (1, 1), (1, 3, 2)])
def test_places_need_an_order(places: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="no order"):
        curve(CER, [], places)


rates = st.lists(st.floats(0, 2), min_size=3, max_size=3)


@given(st.lists(rates, min_size=2, max_size=6), st.integers(0, 10**6))
def test_the_order_of_rows_and_splitting_pages_change_nothing(bases: list[list[float]], seed: int) -> None:
    rows = [
        (f"base {number}", float(place), (rate, 1.0))
        for number, row in enumerate(bases)
        for place, rate in enumerate(row)
    ]
    mixed = [(base, place, (counts[0] / 2, counts[1] / 2)) for base, place, counts in rows for _ in range(2)]
    random.Random(seed).shuffle(mixed)
    one, other = (curve(CER, each, (0, 1, 2), draws=50) for each in (rows, mixed))
    assert np.allclose(one.values, other.values)


@given(st.lists(rates, min_size=2, max_size=6))
def test_figures_stay_within_what_they_can_be(bases: list[list[float]]) -> None:
    rungs = [
        (str(number), float(place), (rate, 1.0)) for number, row in enumerate(bases) for place, rate in enumerate(row)
    ]
    found = curve(CER, rungs, (0, 1, 2), draws=50)
    share = area(found)
    assert share.value is not None and 0 <= share.value <= 1
    for crossing in (limit(found, 0.05), half_loss(found)):
        inside = [end for end in (crossing.value, crossing.low, crossing.high) if end is not None]
        assert all(0 <= end <= 2 for end in inside)
        assert (crossing.value is not None) == (crossing.where == "within")
        if crossing.low is not None and crossing.high is not None:
            assert crossing.low <= crossing.high


@pytest.mark.parametrize(("bases", "least"), [(2, 0.87), (3, 0.87), (40, 0.91)])
def test_the_interval_of_a_limit_holds_the_true_one(bases: int, least: float) -> None:
    """Pages whose CER doubles from rung to rung; the true curve crosses 5 % at 7.5 px by interpolation."""
    true = np.array([0.003, 0.004, 0.006, 0.01, 0.03, 0.07, 0.2, 0.5])
    chance = np.random.default_rng(8)
    repeats, held = 200, 0
    for _ in range(repeats):
        difficulty = chance.gamma(4, 0.25, (bases, 1))
        edits = chance.binomial(1000, np.minimum(difficulty * true, 1)).astype(float)
        rungs = [
            (str(base), place, (count, 1000.0))
            for base, row in enumerate(edits.tolist())
            for place, count in zip(X_HEIGHTS, row, strict=True)
        ]
        found = limit(curve(CER, rungs, X_HEIGHTS, draws=500), 0.05)
        assert bases < 40 or (found.low is not None and found.high is not None)
        held += (found.low or 5) <= 7.5 <= (found.high or 24)
    assert least <= held / repeats <= 0.99, held / repeats


def test_a_curve_keeps_its_shape() -> None:
    found = curve(CER, alike((0.1, 0.2), (0, 1), bases=4), (0, 1), draws=30)
    assert isinstance(found, Curve) and found.values.shape == (1 + 30 + 4, 2) and found.accuracy().shape == (35, 2)
