"""Assignments: the cheapest, and among equally cheap ones the one that SciPy takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from loupe.metrics.assignment import assign

#: Costs as they come: distances of all kinds; few different ones, so that nearly everything is a tie; all equal.
STEPS = (0, 1, 2, 7)


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(0, 20), st.sampled_from(STEPS))
def test_pairs_are_those_of_scipy_ties_included(seed: int, rows: int, columns: int, steps: int) -> None:
    costs = np.random.default_rng(seed).random((rows, columns))
    if steps:
        costs = np.floor(costs * steps) / steps
    expected = linear_sum_assignment(costs)
    assert [side.tolist() for side in assign(costs)] == [side.tolist() for side in expected]


@pytest.mark.parametrize("steps", STEPS)
def test_pairs_of_a_large_page_are_those_of_scipy(steps: int) -> None:
    costs = np.random.default_rng(steps).random((150, 220))
    costs = np.floor(costs * steps) / steps if steps else costs
    for given_costs in (costs, costs.T):
        expected = linear_sum_assignment(given_costs)
        assert [side.tolist() for side in assign(given_costs)] == [side.tolist() for side in expected]
