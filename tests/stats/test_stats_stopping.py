"""Reading until an interval is narrow enough: when it ends, and that the interval still holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.stats.analysis import Analysis
from loupe.stats.bootstrap import interval, resample
from loupe.stats.bounds_of_unread import evidence
from loupe.stats.clusters import Clustered, MeasureRows
from loupe.stats.comparison import compare
from loupe.stats.estimates import estimate_clustered
from loupe.stats.stopping import FEWEST, STEP, Goal, Look, decide, look
from loupe.types import Measure, SampleScores, Score

GOAL = Goal(half_width=0.01, most=1000)


def wide(half: float) -> tuple[float, float]:
    return 0.5 - half, 0.5 + half


def decided(goal: Goal, ends: tuple[float, float] | None, clusters: int) -> Look:
    """With clusters that all weigh the same."""
    return decide(goal, ends, np.resize([1.0, -1.0], clusters), clusters=clusters)


def mean_run(values: list[float]) -> Clustered:
    numbers = np.arange(len(values))
    return Clustered(
        tuple(f"{each:03}" for each in numbers),
        {"mean": MeasureRows(np.array([(each, 1.0) for each in values]), numbers)},
    )


def test_it_stops_by_width_and_says_so() -> None:
    found = decided(GOAL, wide(0.0099), 200)
    assert (found.ended, found.more, found.clusters) == ("width", 0, 200)
    assert found.half_width == pytest.approx(0.0099)


def test_it_goes_on_by_a_fifth_while_the_interval_is_too_wide() -> None:
    assert decided(GOAL, wide(0.0101), 200).more == 40
    assert decided(GOAL, wide(0.0101), 200).ended == ""
    assert decided(GOAL, wide(0.5), FEWEST).more == STEP


def test_few_pages_are_not_believed() -> None:
    found = decided(GOAL, wide(0.001), 12)
    assert (found.ended, found.more) == ("", FEWEST - 12)


def test_it_ends_where_no_more_pages_may_follow() -> None:
    assert decided(GOAL, wide(0.5), 1000).ended == "pages"
    assert decided(GOAL, wide(0.5), 990).more == 10
    assert decided(Goal(half_width=0.01, most=20), wide(0.5), 20).ended == "pages"
    assert decided(GOAL, wide(0.005), 1000).ended == "width"


def test_without_an_interval_it_goes_on() -> None:
    found = decided(GOAL, None, 100)
    assert found.half_width is None and found.ended == "" and found.more == STEP


def test_few_clusters_that_carry_the_spread_are_not_believed() -> None:
    """100 pages of which five failed: narrow enough, and the next 100 may have ten."""
    uneven = np.array([1.0] * 5 + [0.0] * 95)
    assert evidence(uneven) == pytest.approx(5.53, abs=0.01)
    assert decide(GOAL, wide(0.005), uneven, clusters=100).ended == ""
    assert decide(GOAL, wide(0.005), np.tile(uneven, 6), clusters=600).ended == "width"
    assert evidence(np.zeros(40)) == 40 and evidence(np.empty(0)) == 0


ANALYSIS = Analysis([Measure(name="mean")], headline="mean")


def test_the_interval_is_that_of_a_result() -> None:
    values = np.random.default_rng(3).beta(6, 1, 200).tolist()
    found = estimate_clustered(ANALYSIS, mean_run(values))["mean"]
    assert found.low is not None and found.high is not None
    half = (found.high - found.low) / 2
    assert look(Goal(half_width=half, most=500), ANALYSIS, [mean_run(values)]).ended == "width"
    assert look(Goal(half_width=half * 0.999, most=500), ANALYSIS, [mean_run(values)]).half_width == pytest.approx(half)


def test_a_perfect_engine_is_done_when_the_exact_bound_is_narrow() -> None:
    goal = Goal(half_width=0.01, most=1000, measure="mean")
    assert look(goal, ANALYSIS, [mean_run([1.0] * 100)]).ended == ""
    assert look(goal, ANALYSIS, [mean_run([1.0] * 200)]).ended == "width"


def test_a_difference_of_two_engines_is_that_of_their_comparison() -> None:
    chance = np.random.default_rng(4)
    first = chance.beta(6, 1, 150)
    second = first * np.where(chance.random(150) < 0.5, 0.9, 1.0)
    runs = [mean_run(each.tolist()) for each in (first, second)]
    rows = [
        [
            SampleScores(sample=f"{at:03}", scores=[Score(measure="mean", counts=(value, 1.0))])
            for at, value in enumerate(each)
        ]
        for each in (first.tolist(), second.tolist())
    ]
    found = compare(ANALYSIS, *rows)["mean"]
    assert found.low is not None and found.high is not None
    looked = look(Goal(half_width=0.01, most=500, between=("a", "b")), ANALYSIS, runs)
    assert looked.half_width == pytest.approx((found.high - found.low) / 2)
    assert looked.ended == "width"


def test_a_measure_that_nobody_has_has_no_interval() -> None:
    assert look(Goal(half_width=0.1, most=500, measure="other"), ANALYSIS, [mean_run([0.5] * 90)]).half_width is None


@pytest.mark.parametrize("half", [0.0, -1.0, math.nan])
def test_a_width_that_no_interval_can_have_is_refused(half: float) -> None:
    with pytest.raises(ValueError, match="half-width"):
        decided(Goal(half_width=half, most=10), wide(1.0), 5)


@given(st.integers(1, 2000), st.integers(1, 2000), st.floats(0.0001, 1))
def test_every_look_either_ends_or_brings_it_nearer(clusters: int, most: int, half: float) -> None:
    found = decided(Goal(half_width=0.01, most=most), wide(half), min(clusters, most))
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
        found = resample(Analysis([Measure(name=name) for name in rows], draws=1000), scores)
        looks = {}
        for one in going:
            ends = interval(found[str(one)])
            looks[one] = decide(goal, ends, found[str(one)].left_out, clusters=clusters)
            held += bool(looks[one].ended and ends is not None and ends[0] <= 0.8 <= ends[1])
        going = [one for one in going if not looks[one].ended]
        clusters += max((looks[one].more for one in going), default=0)
    assert 0.92 <= held / 400 <= 0.98, held / 400
