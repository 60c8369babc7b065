"""Reading until an interval is narrow enough: when it ends, and that the interval still holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Clustered, MeasureRows
from loupe.stats.comparison import Difference
from loupe.stats.estimates import estimate_clustered
from loupe.stats.stopping import FEWEST, STEP, Goal, look
from loupe.types import Estimate, Measure

GOAL = Goal(half_width=0.01, most=1000)


def wide(half: float) -> Estimate:
    return Estimate(value=0.5, low=0.5 - half, high=0.5 + half, n=100)


def test_it_stops_by_width_and_says_so() -> None:
    found = look(GOAL, wide(0.0099), 200)
    assert (found.ended, found.more, found.clusters) == ("width", 0, 200)
    assert found.half_width == pytest.approx(0.0099)


def test_it_goes_on_by_a_fifth_while_the_interval_is_too_wide() -> None:
    assert look(GOAL, wide(0.0101), 200).more == 40
    assert look(GOAL, wide(0.0101), 200).ended == ""
    assert look(GOAL, wide(0.5), FEWEST).more == STEP


def test_few_pages_are_not_believed() -> None:
    found = look(GOAL, wide(0.001), 12)
    assert (found.ended, found.more) == ("", FEWEST - 12)


def test_it_ends_where_no_more_pages_may_follow() -> None:
    assert look(GOAL, wide(0.5), 1000).ended == "pages"
    assert look(GOAL, wide(0.5), 990).more == 10
    assert look(Goal(half_width=0.01, most=20), wide(0.5), 20).ended == "pages"
    assert look(GOAL, wide(0.005), 1000).ended == "width"


def test_without_an_interval_it_goes_on() -> None:
    found = look(GOAL, Estimate(value=1.0, n=100), 100)
    assert found.half_width is None and found.ended == "" and found.more == STEP


def test_a_difference_of_two_engines_has_a_width_too() -> None:
    goal = Goal(half_width=0.01, most=500, between=("rapidocr", "tesseract"))
    assert look(goal, Difference(difference=0.1, low=0.092, high=0.108), 100).ended == "width"
    assert look(goal, Difference(difference=0.1, low=0.08, high=0.12), 100).ended == ""


@pytest.mark.parametrize("half", [0.0, -1.0, math.nan])
def test_a_width_that_no_interval_can_have_is_refused(half: float) -> None:
    with pytest.raises(ValueError, match="half-width"):
        look(Goal(half_width=half, most=10), wide(1.0), 5)


@given(st.integers(1, 2000), st.integers(1, 2000), st.floats(0.0001, 1))
def test_every_look_either_ends_or_brings_it_nearer(clusters: int, most: int, half: float) -> None:
    found = look(Goal(half_width=0.01, most=most), wide(half), min(clusters, most))
    assert bool(found.ended) != (found.more > 0)
    assert found.clusters + found.more <= most


def test_an_interval_at_which_reading_stopped_holds_the_truth() -> None:
    """Pages right with a chance of 0.8, read until ± 7 points: 400 times. perf/coverage.py has more kinds of pages."""
    chance = np.random.default_rng(5)
    outcomes = chance.binomial(1, 0.8, (600, 400)).astype(float)
    goal, clusters = Goal(half_width=0.07, most=600), FEWEST
    going, held = list(range(400)), 0
    while going:
        numbers = np.arange(clusters)
        rows = {str(one): np.stack([outcomes[:clusters, one], np.ones(clusters)], axis=-1) for one in going}
        scores = Clustered(tuple(map(str, numbers)), {name: MeasureRows(each, numbers) for name, each in rows.items()})
        found = estimate_clustered(Analysis([Measure(name=name) for name in rows], draws=1000), scores)
        looks = {one: look(goal, found[str(one)], clusters) for one in going}
        for one in going:
            low, high = found[str(one)].low, found[str(one)].high
            held += bool(looks[one].ended and low is not None and high is not None and low <= 0.8 <= high)
        going = [one for one in going if not looks[one].ended]
        clusters += max((looks[one].more for one in going), default=0)
    assert 0.92 <= held / 400 <= 0.98, held / 400
