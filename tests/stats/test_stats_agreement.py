"""Interval, p-value and verdict of a comparison say the same, and the interval holds the true difference."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.results.visible_differences import verdict
from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare
from loupe.stats.ranks import standings
from loupe.types import Measure, SampleScores, Score, Values

TEXT, TABLES, RATE, OVERALL = (Measure(name=name) for name in ("text", "tables", "rate", "overall"))
MEASURES = [OVERALL, TEXT, TABLES, RATE]


def overall(values: Values) -> Values:
    return {"overall": (values["text"] + values["tables"]) / 2}


def run(seed: int, shift: float, *, pages: int, skewed: bool) -> list[SampleScores]:
    """Pages of one difficulty for all runs; a table on every other page, a rate over lines of very unequal number."""
    shared, own = np.random.default_rng(pages), np.random.default_rng(seed)
    samples = []
    for number in range(pages):
        base, lines = shared.uniform(0.2, 0.9), int(shared.integers(1, 40))
        noise = own.exponential(0.15) - 0.15 if skewed else own.normal(0, 0.1)
        value = float(np.clip(base + noise + shift, 0, 1))
        scores = [Score(measure="text", counts=(value, 1.0))]
        scores += [Score(measure="rate", counts=(float(own.binomial(lines, value)), float(lines)))]
        scores += [Score(measure="tables", counts=(value**2, 1.0))] if number % 2 else []
        samples.append(SampleScores(sample=f"{number}", scores=scores))
    return samples


def contradictions(found: Iterable[Difference]) -> list[Difference]:
    """Differences whose interval does not say what their p-value and verdict say."""
    shown = [one for one in found if one.low is not None and one.high is not None and one.difference is not None]
    wrong = []
    for one in shown:
        assert one.low is not None and one.high is not None and one.p_holm is not None and one.difference is not None
        clear = not one.low <= 0 <= one.high
        same_side = (one.low > 0) == (one.difference > 0) if clear else True
        if clear != (one.p_holm < 0.05) or not same_side or not one.low <= one.difference <= one.high:
            wrong.append(one)
        if (verdict(one, higher_is_better=True) == "no clear difference") == clear:
            wrong.append(one)
    return wrong


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=4),
    st.sampled_from([6, 7, 9, 12, 19, 40]),
    st.integers(0, 1000),
    st.booleans(),
)
def test_interval_p_value_and_verdict_never_contradict_each_other(
    shifts: list[float], pages: int, seed: int, skewed: bool
) -> None:
    runs = {f"{n}": run(seed + n, shift, pages=pages, skewed=skewed) for n, shift in enumerate(shifts)}
    found = standings(Analysis(MEASURES, headline="overall", summarize=overall, draws=400), runs)
    assert contradictions(one for each in found.pairs.values() for one in each.values()) == []


def test_no_difference_of_two_runs_has_an_interval_where_there_is_no_test() -> None:
    a, b = (run(seed, 0.3 * seed, pages=5, skewed=False) for seed in (1, 0))
    found = compare(Analysis(MEASURES, summarize=overall), a, b)
    assert {(one.low, one.high, one.p) for one in found.values()} == {(None, None, None)}


def test_several_questions_at_once_make_the_interval_as_wide_as_they_make_p_large() -> None:
    a, b = (run(seed, 0.02 * seed, pages=40, skewed=False) for seed in (1, 0))
    alone, together = compare(Analysis([TEXT]), a, b)["text"], compare(Analysis([TEXT, RATE, TABLES]), a, b)["text"]
    # Other measures put the pages into another order, and so draw other exchanges.
    assert alone.p_holm == alone.p == pytest.approx(together.p, abs=0.03)
    assert together.p_holm is not None and together.p is not None
    assert together.p_holm > together.p and width(together) > width(alone)


def test_the_interval_is_that_of_the_paired_t_test_where_differences_are_normal() -> None:
    generator = np.random.default_rng(5)
    base, apart = generator.uniform(0.3, 0.7, 60), generator.normal(0.02, 0.1, 60)
    found = compare(Analysis([TEXT]), rows(base + apart), rows(base))["text"]
    half = 2.001 * float(apart.std(ddof=1)) / np.sqrt(60)
    assert found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx((apart.mean() - half, apart.mean() + half), abs=0.003)


@pytest.mark.parametrize(("pages", "least"), [(12, 0.925), (30, 0.935), (100, 0.94)])
def test_the_interval_holds_the_true_difference_in_about_19_of_20_benchmarks(pages: int, least: float) -> None:
    """Summed errors of pages of unequal length, skewed page by page; 1,000 benchmarks, standard error 0.7 points."""
    generator = np.random.default_rng([17, pages])
    repeats, truth, held = 1000, 0.02, 0
    length = generator.integers(20, 400, (pages, repeats))
    hard = generator.gamma(3, 0.05 / 3, (pages, repeats))
    a = generator.binomial(length, np.minimum(hard * generator.uniform(0.8, 1.2, hard.shape) + truth, 1))
    b = generator.binomial(length, np.minimum(hard * generator.uniform(0.8, 1.2, hard.shape), 1))
    for first in range(0, repeats, 100):
        names = [Measure(name=f"{n}") for n in range(first, first + 100)]
        sides = [(Analysis([one], draws=400), pick(a, length, one), pick(b, length, one)) for one in names]
        found = [compare(*each)[one.name] for one, each in zip(names, sides, strict=True)]
        held += sum(one.low is not None and one.high is not None and one.low <= truth <= one.high for one in found)
    assert least <= held / repeats <= 0.985


def pick(edits: np.ndarray, length: np.ndarray, measure: Measure) -> list[SampleScores]:
    column = int(measure.name)
    counts = zip(edits[:, column].tolist(), length[:, column].tolist(), strict=True)
    return [
        SampleScores(sample=f"{n}", scores=[Score(measure=measure.name, counts=(float(e), float(size)))])
        for n, (e, size) in enumerate(counts)
    ]


def rows(values: np.ndarray) -> list[SampleScores]:
    return [
        SampleScores(sample=f"{n}", scores=[Score(measure="text", counts=(value, 1.0))])
        for n, value in enumerate(values.tolist())
    ]


def width(found: Difference) -> float:
    assert found.low is not None and found.high is not None
    return found.high - found.low


def test_each_difference_says_which_interval_it_has_and_for_how_many_questions() -> None:
    chance = np.random.default_rng(3)
    base, lost = chance.uniform(0.3, 0.7, 40), np.arange(40) == 7
    names = ("headline", "dense", "sparse", "unscaled", "lacking")
    unscaled = Measure(name="unscaled", unit="number", pooled=True, value=lambda rows: float(rows[:, 0].mean()))
    measures = [unscaled if name == "unscaled" else Measure(name=name) for name in names]
    runs = [
        [
            SampleScores(
                sample=f"{n}",
                scores=[
                    Score(measure=name, counts=(float(values[n]), 1.0))
                    for name, values in (
                        ("headline", base + shift),
                        ("dense", base + shift * chance.normal(1, 1, 40)),
                        ("sparse", 1 - lost * shift),
                        ("unscaled", np.full(40, shift)),
                        *([("lacking", base)] if shift else []),
                    )
                ],
            )
            for n in range(40)
        ]
        for shift in (0.1, 0.0)
    ]
    found = compare(Analysis(measures, headline="headline"), *runs)
    assert {name: (one.interval, one.questions) for name, one in found.items()} == {
        "headline": ("unread", 1),
        "dense": ("permutation", 3),
        "sparse": ("unread", 3),
        "unscaled": ("none: no scale bounds it", 3),
        "lacking": ("none: not computed in both runs", 1),
    }
    assert all((one.low is None) == one.interval.startswith("none") for one in found.values())
    few = compare(Analysis(measures[:1]), runs[0][:5], runs[1][:5])["headline"]
    assert (few.low, few.interval) == (None, "none: too few clusters")
