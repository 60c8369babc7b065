"""What so few documents can show: the difference called detectable is found in four of five cases."""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec
import numpy as np
import pytest

from loupe.results.visible_differences import needed, visible_differences
from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare
from loupe.stats.power import Pilot
from loupe.stats.proportions import mcnemar_exact
from loupe.types import Measure, SampleScores, Score

MEASURE = Measure(name="similarity")


def run(values: np.ndarray) -> list[SampleScores]:
    return [
        SampleScores(sample=f"d{n:03d}", scores=[Score(measure="similarity", counts=(float(value), 1.0))])
        for n, value in enumerate(values)
    ]


def of_alike(difference: float, error: float, size: int) -> Pilot:
    """A pilot of documents of equal weight that all differ."""
    return Pilot(difference, error, documents=size, effective=size, doubt=2 / (size - 1))


def test_a_difference_of_that_size_is_significant_in_four_of_five_cases() -> None:
    generator = np.random.default_rng(7)
    size, spread = 30, 0.1
    truly = of_alike(0.0, spread / np.sqrt(size), size).detectable()
    found, stated = 0, []
    for _ in range(200):
        base = generator.uniform(0.2, 0.8, size)
        other = base + generator.normal(truly, spread, size)
        difference = compare(Analysis([MEASURE], draws=200), run(other), run(base))["similarity"]
        assert difference.p is not None and difference.detectable is not None
        found += difference.p < 0.05
        stated.append(difference.detectable)
    assert 0.72 <= found / 200 <= 0.88
    assert np.mean(stated) == pytest.approx(truly, rel=0.05)


@pytest.mark.parametrize("size", [12, 30, 100])
def test_right_and_wrong_answers_show_that_difference_with_the_documents_that_it_makes_differ(size: int) -> None:
    each = size // 12
    values = np.array([1.0] * each + [0.0] * (size - each))
    found = compare(Analysis([MEASURE], draws=200), run(values), run(values[::-1]))["similarity"]
    assert found.detectable is not None
    # By hand: every number of documents that one engine alone has right, and the other.
    better, worse = each / size + found.detectable, each / size
    worse = min(worse, (1 - found.detectable) / 2)
    better = worse + found.detectable
    power = 0.0
    for one in range(size + 1):
        for other in range(min(one, size - one) + 1):
            if mcnemar_exact([True] * one + [False] * other, [False] * one + [True] * other) < 0.05:
                rest = size - one - other
                ways = math.comb(size, one) * math.comb(size - one, other)
                power += ways * better**one * worse**other * max(1 - better - worse, 0.0) ** rest
    assert power == pytest.approx(0.8, abs=0.005)


def test_documents_of_very_unequal_length_show_it_and_the_range_of_those_needed_holds() -> None:
    """Four of five cases, where counting documents alone gave 55 to 65 %."""
    generator = np.random.default_rng(3)
    size = 30
    pages = np.exp(1.5 * generator.permutation([NormalDist().inv_cdf((n + 0.5) / size) for n in range(size)]))

    def documents(true: float) -> Difference:
        noise = true + generator.normal(0, 0.1, size)
        both = [
            [SampleScores(sample=f"{n}", scores=[Score(measure="similarity", counts=(a, b))]) for n, (a, b) in each]
            for each in (enumerate(zip(pages * (0.5 + more), pages, strict=True)) for more in (noise, 0 * noise))
        ]
        return compare(Analysis([MEASURE]), *both)["similarity"]

    assert documents(0.0).rough and not of_alike(0.0, 0.02, size).rough
    pilots = [documents(0.0).detectable for _ in range(60)]
    truly = float(np.median([each for each in pilots if each is not None]))
    found = [documents(truly) for _ in range(200)]
    assert 0.72 <= np.mean([(each.p or 0) < 0.05 for each in found]) <= 0.88
    # As many as these show it in four of five cases.
    held = [(each.needed_least or 0) <= size <= (each.needed_most or size) for each in found]
    assert np.mean(held) >= 0.92


@pytest.mark.parametrize("difference", [0.005, 0.02, 0.1, 0.3])
def test_as_many_documents_as_are_needed_show_the_difference_and_one_less_does_not(difference: float) -> None:
    pilot = of_alike(difference, 0.02, 30)
    count, spread = pilot.needed(), 0.02 * np.sqrt(30)
    assert count is not None
    assert of_alike(difference, spread / np.sqrt(count), count).detectable() <= difference
    assert count == 6 or of_alike(difference, spread / np.sqrt(count - 1), count - 1).detectable() > difference
    least, most = pilot.needed_between(None)
    assert least <= count and (most is None or count <= most)
    assert (most is None) == (difference < 1.96 * 0.02)


def test_no_number_of_documents_shows_no_difference() -> None:
    assert of_alike(0.0, 0.02, 30).needed() is None
    known = Difference(difference=0.001, shared=30, p=0.8, detectable=0.1, needed=12345, needed_least=120)
    assert needed(msgspec.structs.replace(known, difference=0.0)) == "none: no difference"
    assert needed(known) == "about 12,000, at least 120"
    assert needed(msgspec.structs.replace(known, needed_most=123456)) == "about 12,000, between 120 and 120,000"
    assert needed(msgspec.structs.replace(known, needed=None)) == "more than a million, at least 120"


def section(found: Difference) -> tuple[str, ...]:
    """What the table below a ranking says of a pair."""
    (table,) = visible_differences([("a minus b", found)], "similarity", "fraction")
    return tuple(map(str, table.rows[0][1:]))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_fewer_documents_than_any_test_needs_show_nothing_and_no_forecast_is_made(size: int) -> None:
    spread = np.linspace(0.1, 0.9, size)
    found = compare(Analysis([MEASURE], draws=200), run(spread), run(np.zeros(size)))["similarity"]
    assert (found.p, found.detectable, found.needed, found.unseen) == (None, None, None, None)
    assert section(found) == ("+50.00 points", "none: fewer than six", "at least 6")


def test_a_difference_beyond_the_scale_is_none_that_could_show() -> None:
    values = np.array([1.0, 0.0, 1.0, 0.0, 0.9, 0.1])
    found = compare(Analysis([MEASURE], draws=200), run(values), run(1 - values))["similarity"]
    assert found.detectable is not None and found.detectable > 1
    assert section(found)[1] == "none: would exceed 100 points"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (1.0, ("0.00 points", "none seen; up to 37 % of documents may differ", "none: no difference")),
        (0.5, None),  # It is clear, so nothing is open.
    ],
)
def test_documents_that_all_differ_alike_say_what_share_could_be_different(
    other: float, words: tuple[str, ...] | None
) -> None:
    found = compare(Analysis([MEASURE], draws=200), run(np.ones(8)), run(np.full(8, other)))["similarity"]
    assert found.detectable is None and found.unseen == pytest.approx(1 - 0.025 ** (1 / 8))
    # With that share of documents different, eight without one of them are seen in one of forty cases.
    assert (1 - found.unseen) ** 8 == pytest.approx(0.025)
    if words is None:
        assert visible_differences([("a minus b", found)], "similarity", "fraction") == []
    else:
        assert section(found) == words


def test_a_clear_difference_below_the_smallest_detectable_one_is_not_called_undetectable() -> None:
    """In the demo stood "5.56 points, smallest detectable 9.27, enough already"."""
    clear = Difference(difference=0.0556, shared=12, p=0.02, p_holm=0.02, detectable=0.0927, needed=30, needed_least=8)
    assert visible_differences([("a minus b", clear)], "similarity", "fraction") == []
    assert section(msgspec.structs.replace(clear, p_holm=0.06, rough=True))[1].startswith("9.27 points (rough: ")
    # Clear alone, and not among several pairs: the forecast never contradicts the figure beside it.
    several = msgspec.structs.replace(clear, p_holm=0.06)
    assert section(several) == ("+5.56 points", "9.27 points", "about 30, at least 8")


def test_a_difference_has_the_sign_that_its_name_promises() -> None:
    for difference, shown in ((-0.075, "-7.50 points"), (0.075, "+7.50 points"), (0.0, "0.00 points")):
        assert section(Difference(difference=difference, shared=30, p=0.5, detectable=0.1))[0] == shown


def test_many_documents_need_no_such_table() -> None:
    few, many = (Difference(difference=0.1, shared=n, detectable=0.2, needed=9) for n in (30, 1000))
    (section,) = visible_differences([("a minus b", few), ("a minus c", many)], "similarity", "fraction")
    assert [row[:3] for row in section.rows] == [("a minus b", "+10.00 points", "20.00 points")]
    assert "30 documents" in section.title and visible_differences([("a", many)], "similarity", "fraction") == []
