"""What so few documents can show: the difference called detectable is found in four of five cases."""

from __future__ import annotations

import numpy as np
import pytest

from loupe.report.visible_differences import needed, visible_differences
from loupe.stats.comparison import Difference, compare
from loupe.stats.power import clusters_needed, detectable_difference
from loupe.types import Measure, SampleScores, Score

MEASURE = Measure(name="similarity")


def run(values: np.ndarray) -> list[SampleScores]:
    return [
        SampleScores(sample=f"d{n:03d}", scores=[Score(measure="similarity", counts=(float(value), 1.0))])
        for n, value in enumerate(values)
    ]


def test_a_difference_of_that_size_is_significant_in_four_of_five_cases() -> None:
    generator = np.random.default_rng(7)
    size, spread = 30, 0.1
    truly = detectable_difference(spread / np.sqrt(size), size)
    found, stated = 0, []
    for _ in range(200):
        base = generator.uniform(0.2, 0.8, size)
        other = base + generator.normal(truly, spread, size)
        difference = compare([MEASURE], run(other), run(base), draws=200)["similarity"]
        assert difference.p is not None and difference.detectable is not None
        found += difference.p < 0.05
        stated.append(difference.detectable)
    assert 0.72 <= found / 200 <= 0.88
    assert np.mean(stated) == pytest.approx(truly, rel=0.05)


@pytest.mark.parametrize("difference", [0.005, 0.02, 0.1, 0.3])
def test_as_many_documents_as_are_needed_show_the_difference_and_one_less_does_not(difference: float) -> None:
    count = clusters_needed(0.02, 30, difference)
    assert count is not None
    spread = 0.02 * np.sqrt(30)
    assert detectable_difference(spread / np.sqrt(count), count) <= difference
    assert count == 6 or detectable_difference(spread / np.sqrt(count - 1), count - 1) > difference


def test_no_number_of_documents_shows_no_difference() -> None:
    assert clusters_needed(0.02, 30, 0.0) is None
    assert needed(Difference(difference=0.0, shared=30, p=1.0, detectable=0.1)) == "no number: no difference"
    assert (
        needed(Difference(difference=0.001, shared=30, p=0.8, detectable=0.1, needed=12345))
        == "about 12,000, 12,000 more"
    )
    assert needed(Difference(difference=0.2, shared=30, p=0.01, detectable=0.1, needed=9)) == "shown already"


def test_many_documents_need_no_such_table() -> None:
    few, many = (Difference(difference=0.1, shared=n, detectable=0.2, needed=9) for n in (30, 1000))
    (section,) = visible_differences([("a minus b", few), ("a minus c", many)], "similarity", "fraction")
    assert [row[:3] for row in section.rows] == [("a minus b", "10.00 points", "20.00 points")]
    assert "30 documents" in section.title and visible_differences([("a", many)], "similarity", "fraction") == []
