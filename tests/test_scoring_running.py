"""The running headline: equal to the final value, with an interval like that of the bootstrap."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from loupe.scoring.running import RunningScore
from loupe.stats.estimates import estimate
from loupe.types import Benchmark, Estimate, Measure, SampleScores, Score, Values


def overall(values: Values) -> Values:
    return {"overall": (1 - values["cer"] + values["teds"]) / 2}


def benchmark(*measures: Measure, **fields: object) -> Benchmark:
    return Benchmark(
        title="t", version="1", task="text", measures=measures, load=lambda root: (), score=lambda s, p: [], **fields
    )  # type: ignore[arg-type]


CER = benchmark(Measure(name="cer", higher_is_better=False))
COMPOSITE = benchmark(
    Measure(name="cer", higher_is_better=False), Measure(name="teds"), Measure(name="overall"),
    headline="overall", summarize=overall,
)  # fmt: skip


def samples(count: int, *, tables: bool = False) -> list[SampleScores]:
    dice = random.Random(1)
    rows = []
    for number in range(count):
        length = dice.randint(20, 200)
        scores = [Score(measure="cer", counts=(float(dice.randint(0, length // 4)), float(length)))]
        scores += [Score(measure="teds", counts=(dice.random(), 1.0)) for _ in range(dice.randint(0, 2) * tables)]
        rows.append(SampleScores(sample=str(number), scores=scores))
    return rows


def run(of: Benchmark, rows: list[SampleScores]) -> Estimate | None:
    running = RunningScore(of)
    for row in rows:
        running.add(row)
    return running.estimate()


def test_before_the_first_score_there_is_nothing() -> None:
    assert run(CER, []) is None
    assert run(CER, [SampleScores(sample="a")]) is None


def test_one_sample_has_a_value_but_no_interval() -> None:
    assert run(CER, [SampleScores(sample="a", scores=[Score(measure="cer", counts=(1.0, 4.0))])]) == Estimate(
        value=0.25, n=1
    )


def test_the_interval_of_a_mean_is_the_textbook_one() -> None:
    values = [0.2, 0.4, 0.9, 0.5]
    rows = [SampleScores(sample=str(v), scores=[Score(measure="m", counts=(v, 1.0))]) for v in values]
    found = run(benchmark(Measure(name="m", unit="number")), rows)
    margin = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(4)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5 - margin, 0.5 + margin), abs=1e-6)


@pytest.mark.parametrize(("of", "tables"), [(CER, False), (COMPOSITE, True)], ids=["ratio", "composite"])
def test_value_and_interval_agree_with_the_final_result(of: Benchmark, tables: bool) -> None:
    rows = samples(300, tables=tables)
    found = run(of, rows)
    final = estimate(
        of.measures, [(row.sample, score) for row in rows for score in row.scores], summarize=of.summarize
    )[of.headline_measure]
    assert found is not None and found.low is not None and found.high is not None
    assert final.low is not None and final.high is not None
    assert found.value == pytest.approx(final.value, abs=1e-12)
    width = final.high - final.low
    assert (found.low, found.high) == pytest.approx((final.low, final.high), abs=0.15 * width)


def test_a_share_stays_between_zero_and_one() -> None:
    rows = [SampleScores(sample=str(v), scores=[Score(measure="m", counts=(v, 1.0))]) for v in (1.0, 1.0, 0.0)]
    found = run(benchmark(Measure(name="m")), rows)
    assert found is not None and found.high == 1.0


def test_a_composite_waits_for_all_its_parts() -> None:
    assert run(COMPOSITE, samples(5)) is None


def test_a_pooled_headline_has_no_running_value() -> None:
    pooled = benchmark(Measure(name="m", pooled=True, value=lambda rows: np.median(rows)))
    assert run(pooled, [SampleScores(sample="a", scores=[Score(measure="m", counts=(1.0, 1.0))])]) is None


def test_another_thousand_samples_cost_no_memory() -> None:
    running = RunningScore(CER)
    for row in samples(1000):
        running.add(row)
    assert running._moments.shape == (2, 2)
