"""Benchmarks that prepare samples together: in the scoring process, in batches, and never to the harm of a score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loupe.benchmarks import get_benchmark
from loupe.scoring.batches import BatchSizes
from loupe.scoring.pool import ScorePool, score_digest
from loupe.types import Prediction, Sample, SampleScores

TOY = '''
"""Prepares squares, in an order that the test can see."""
import os, signal, time
from loupe.types import Benchmark, Measure, Score

BATCHES = {}


def load(root):
    yield from ()


def prepare(pairs):
    texts = [prediction.text for _, prediction in pairs]
    if "hang" in texts and len(texts) > 1:
        time.sleep(1000)
    if "crash" in texts:
        os.kill(os.getpid(), signal.SIGSEGV)
    for text in texts:
        BATCHES[text] = len(texts)
    if "raise" in texts:
        raise ValueError("not today")


def score(sample, prediction):
    return [Score(measure="batch", counts=(float(BATCHES.get(prediction.text, -1)), 1.0))]


def tools():
    return {"tex": VERSION}


VERSION = "1"
benchmark = Benchmark(
    title="toy", version="1", task="text", measures=(Measure(name="batch"),),
    load=load, score=score, prepare=prepare, tools=tools,
)
'''


@pytest.fixture
def toy(tmp_path: Path) -> str:
    path = tmp_path / "toy.py"
    path.write_text(TOY)
    return str(path)


def scored(toy: str, *texts: str, timeout: float = 60.0) -> list[SampleScores]:
    with ScorePool(toy, jobs=1, timeout=timeout) as pool:
        futures = [pool.submit(Sample(id=text), Prediction(sample=text, text=text)) for text in texts]
        return [future.result() for future in futures]


def batch_of(row: SampleScores) -> float:
    (score,) = row.scores
    return score.counts[0]


def test_samples_that_wait_are_prepared_together(toy: str) -> None:
    rows = scored(toy, "a", "b", "c", "d")
    assert [batch_of(row) for row in rows] == [4.0] * 4
    assert not any(row.error for row in rows)


def test_failed_predictions_are_prepared_as_they_are_scored_as_empty(toy: str) -> None:
    with ScorePool(toy, jobs=1) as pool:
        future = pool.submit(Sample(id="a"), Prediction(sample="a", text="half an answer", outcome="timeout"))
        assert batch_of(future.result()) == 1.0


def test_a_preparation_that_raises_leaves_scoring_as_it_is(toy: str) -> None:
    rows = scored(toy, "a", "raise", "b")
    assert [batch_of(row) for row in rows] == [3.0] * 3
    assert not any(row.error for row in rows)


def test_a_sample_that_kills_the_preparation_is_the_only_one_to_fail(toy: str) -> None:
    rows = dict(zip(["a", "crash", "b"], scored(toy, "a", "crash", "b"), strict=True))
    assert (batch_of(rows["a"]), batch_of(rows["b"])) == (1.0, 1.0)
    assert "SIGSEGV" in rows["crash"].error
    assert not rows["a"].error and not rows["b"].error


def test_a_preparation_that_hangs_is_done_again_one_by_one(toy: str) -> None:
    rows = scored(toy, "a", "hang", "b", timeout=2.0)
    assert [batch_of(row) for row in rows] == [1.0] * 3
    assert not any(row.error for row in rows)


def test_other_tools_make_another_digest(toy: str) -> None:
    first, sample, prediction = get_benchmark(toy), Sample(id="a"), Prediction(sample="a", text="a")
    other = replace(first, tools=lambda: {"tex": "2"})
    assert score_digest(first, sample, prediction, []) != score_digest(other, sample, prediction, [])


def test_batches_grow_until_they_take_ten_seconds() -> None:
    sizes = BatchSizes(prepared=True)
    assert sizes.next(1000, 2) == 16
    sizes.learn(0.1)
    assert sizes.next(1000, 2) == 100
    assert sizes.next(10, 2) == 5
    assert sizes.wait(3, 0.25) == 0.75
    assert sizes.wait(3, 5.0) == sizes.wait(200, 0.0) == 0.0
    assert BatchSizes(prepared=False).wait(1, 0.0) == 0.0
