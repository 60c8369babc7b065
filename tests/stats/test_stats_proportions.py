"""Wilson's interval and the exact McNemar test, against textbook values and their own definition."""

import doctest
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loupe.stats.proportions
from loupe.stats.proportions import mcnemar_exact, wilson_interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_newcombes_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 400), st.integers(1, 400))
def test_wilson_holds_its_share_and_stays_within_bounds(successes: int, n: int) -> None:
    successes = min(successes, n)
    interval = wilson_interval(successes, n)
    assert interval is not None
    assert 0 <= interval[0] < interval[1] <= 1
    assert interval[0] <= successes / n + 1e-12
    assert successes / n - 1e-12 <= interval[1]
    mirrored = wilson_interval(n - successes, n)
    assert mirrored == pytest.approx((1 - interval[1], 1 - interval[0]))
    assert wilson_interval(0, 0) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_mcnemar_counts_every_way_the_differing_documents_could_have_gone(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [first for first, _ in pairs], [second for _, second in pairs]
    differing = [first for first, second in pairs if first != second]
    seen = abs(sum(differing) - len(differing) / 2)
    ways = list(product([False, True], repeat=len(differing)))
    expected = sum(abs(sum(way) - len(differing) / 2) >= seen for way in ways) / len(ways)
    assert mcnemar_exact(a, b) == pytest.approx(expected)
    assert mcnemar_exact(a, b) == mcnemar_exact(b, a)


def test_the_examples_are_true() -> None:
    assert doctest.testmod(loupe.stats.proportions).failed == 0
