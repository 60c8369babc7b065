"""The running headline: equal to the final value; its interval is drawn at the end."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loupe.scoring.running import RunningScore
from loupe.stats.analysis import Analysis
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
    found = running.estimate()
    return found[1] if found else None


def test_before_the_first_score_there_is_nothing() -> None:
    assert run(CER, []) is None
    assert run(CER, [SampleScores(sample="a")]) is None


def test_one_sample_has_a_value_but_no_interval() -> None:
    assert run(CER, [SampleScores(sample="a", scores=[Score(measure="cer", counts=(1.0, 4.0))])]) == Estimate(
        value=0.25, n=1
    )


@pytest.mark.parametrize(("of", "tables"), [(CER, False), (COMPOSITE, True)], ids=["ratio", "composite"])
def test_the_value_is_that_of_the_final_result_without_an_interval_of_its_own(of: Benchmark, tables: bool) -> None:
    rows = samples(300, tables=tables)
    found = run(of, rows)
    final = estimate(
        Analysis(of.measures, summarize=of.summarize), [(row.sample, score) for row in rows for score in row.scores]
    )[of.headline_measure]
    assert found is not None and (found.low, found.high) == (None, None)
    assert found.value == pytest.approx(final.value, abs=1e-12)


def test_until_a_composite_has_all_its_parts_the_first_of_them_is_named() -> None:
    running = RunningScore(COMPOSITE)
    for row in samples(5):
        running.add(row)
    found = running.estimate()
    assert found is not None and found[0].name == "cer"


def test_a_pooled_headline_has_no_running_value() -> None:
    pooled = benchmark(Measure(name="m", pooled=True, value=lambda rows: np.median(rows)))
    assert run(pooled, [SampleScores(sample="a", scores=[Score(measure="m", counts=(1.0, 1.0))])]) is None


def test_another_thousand_samples_cost_no_memory() -> None:
    running = RunningScore(CER)
    for row in samples(1000):
        running.add(row)
    assert {name: sums.shape for name, sums in running._sums.items()} == {"cer": (2,)}
