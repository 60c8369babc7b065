"""The scoring pool, with real worker processes: every sample on its own account, whatever its scorer does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from loupe.errors import LoupeError, ProfileError, UsageError
from loupe.scoring.child import Scored
from loupe.scoring.pool import ScorePool, score_digest
from loupe.scoring.process import Here, Line, LocalLine, Worker
from loupe.types import Prediction, Sample, SampleScores, Score
from loupe.workers.child import frame

TOY = '''
"""Scores what the prediction tells it to do."""
import os, signal, sys, time
from pathlib import Path
from loupe.types import Benchmark, Measure, Score


def load(root):
    yield from ()


def score(sample, prediction):
    if sample.truth == "always hangs":
        time.sleep(1000)
    match prediction.text:
        case "raise": raise ValueError("first line\\nsecond line")
        case "hang":
            while True: pass
        case "crash": os.kill(os.getpid(), signal.SIGSEGV)
        case "exit": sys.exit(7)
        case "eat": return [bytearray(6 << 30)]
        case "print": print("noise"); os.write(1, b"noise"); print("noise", file=sys.stderr)
        case "children":
            Path(sample.truth).write_text(str(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")))
            time.sleep(1000)
        case "nan": return [Score(measure="exact", counts=(float("nan"), 1.0))]
        case "unknown": return [Score(measure="no such", counts=(1.0, 1.0))]
        case "slow": time.sleep(0.3)
        case "unit": return [Score(measure="exact", counts=(1.0, 1.0), unit=5)]
        case "none": return None
        case "pid": return [Score(measure="exact", counts=(float(os.getpid()), 1.0))]
    return [Score(measure="exact", counts=(float(prediction.text == sample.truth), 1.0), tags={"n": 1})]


benchmark = Benchmark(title="toy", version="1", task="text", measures=(Measure(name="exact"),), load=load, score=score)
'''
RIGHT, WRONG = (1.0, 1.0), (0.0, 1.0)


@pytest.fixture
def toy(tmp_path: Path) -> str:
    path = tmp_path / "toy.py"
    path.write_text(TOY)
    return str(path)


def sample(text: str, truth: object = None) -> tuple[Sample, Prediction]:
    ident = f"id of {text}"
    return Sample(id=ident, truth=text if truth is None else truth), Prediction(sample=ident, text=text)


def scored(toy: str, *texts: str, timeout: float = 60.0, jobs: int = 2) -> list[SampleScores]:
    with ScorePool(toy, jobs=jobs, timeout=timeout) as pool:
        futures = [pool.submit(*sample(text)) for text in texts]
        return [future.result() for future in futures]


def counts(row: SampleScores) -> tuple[float, ...]:
    (score,) = row.scores
    return score.counts


def test_samples_come_back_with_their_scores_and_all_that_describes_them(toy: str) -> None:
    asked = Sample(id="a", truth="text", group="g", tags={"lang": "en"})
    with ScorePool(toy, jobs=1) as pool:
        row = pool.submit(asked, Prediction(sample="a", text="text")).result()
        digest = score_digest(pool.benchmark, asked, Prediction(sample="a", text="text"), [])
    assert (row.sample, row.group, row.tags, row.outcome, row.error) == ("a", "g", {"lang": "en"}, "ok", "")
    assert row.scores == [Score(measure="exact", counts=RIGHT, tags={"n": "1"})]
    assert row.diagnostics["prediction_length"] == 4
    assert row.digest == digest


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("raise", "ValueError: first line second line"),
        ("crash", "scorer died (SIGSEGV)"),
        ("exit", "scorer died (exit code 7)"),
        ("nan", "ValueError: measure 'exact' has counts (nan, 1.0)"),
        ("none", "TypeError: 'NoneType' object is not iterable"),
        ("unknown", "ValueError: measure 'no such' is not one of the benchmark's: exact"),
    ],
)
def test_a_broken_scorer_is_an_error_of_its_sample_which_counts_as_empty(toy: str, text: str, error: str) -> None:
    before, broken, after = scored(toy, "before", text, "after")
    assert broken.error == error
    assert counts(broken) == WRONG
    assert not broken.digest, "so that scoring again tries again"
    assert [counts(before), counts(after)] == [RIGHT, RIGHT]


def test_a_stuck_scorer_is_killed_and_the_rest_of_its_batch_goes_on(toy: str) -> None:
    texts = [f"text {number}" for number in range(40)]
    rows = scored(toy, *texts, "hang", *texts, timeout=2.0)
    assert [row.sample for row in rows if row.error] == ["id of hang"]
    assert rows[40].error == "no score within 2 s"
    assert counts(rows[40]) == WRONG


def test_a_sample_that_cannot_even_be_scored_as_empty_is_left_out_with_its_error(toy: str) -> None:
    with ScorePool(toy, jobs=1, timeout=0.5) as pool:
        row = pool.submit(*sample("text", "always hangs")).result()
    assert row.scores == []
    assert row.error == "no score within 0.5 s; an empty answer: no score within 0.5 s"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_stuck_scorer_has_started_dies_with_it(toy: str, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with ScorePool(toy, jobs=1, timeout=1.0) as pool:
        row = pool.submit(*sample("children", str(noted))).result()
    assert row.error == "no score within 1 s"
    assert _ends(int(noted.read_text()))


def test_scores_with_odd_but_clear_fields_are_taken(toy: str) -> None:
    (row,) = scored(toy, "unit")
    assert row.scores[0].unit == "5"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces the limit")
def test_a_scorer_that_eats_memory_fails_alone(toy: str) -> None:
    row, after = scored(toy, "eat", "after")
    assert row.error == "MemoryError"
    assert counts(after) == RIGHT


def test_a_failed_prediction_scores_as_empty_and_keeps_its_reason(toy: str) -> None:
    failed = Prediction(sample="a", text="half", outcome="timeout", error="no answer in 300 s")
    with ScorePool(toy, jobs=1) as pool:
        row = pool.submit(Sample(id="a", truth="half"), failed).result()
    assert (counts(row), row.outcome, row.error) == (WRONG, "timeout", "no answer in 300 s")
    assert row.digest and not row.diagnostics


def test_adapters_run_before_the_scorer(toy: str) -> None:
    with ScorePool(toy, ["strip", "think"], jobs=1) as pool:
        row = pool.submit(*sample("<think>hm</think> text ", "text")).result()
    assert counts(row) == RIGHT


def test_what_a_scorer_prints_goes_nowhere(toy: str, capfd: pytest.CaptureFixture[str]) -> None:
    (row,) = scored(toy, "print")
    assert counts(row) == RIGHT
    assert capfd.readouterr() == ("", "")


def test_a_sample_that_cannot_travel_is_an_error_of_its_own(toy: str) -> None:
    with ScorePool(toy, jobs=1) as pool:
        row = pool.submit(Sample(id="a", truth=lambda: None), Prediction(sample="a", text="b")).result()
    assert row.error.startswith("cannot be sent to a scorer: ")


def test_few_quick_samples_take_one_worker(toy: str) -> None:
    rows = scored(toy, *["pid"] * 12, jobs=8)
    assert len({counts(row) for row in rows}) == 1


def test_slow_samples_take_more_workers(toy: str) -> None:
    assert len({counts(row) for row in scored(toy, *["slow"] * 8, *["pid"] * 8, jobs=2)}) >= 2


def test_the_async_door_gives_the_same_scores(toy: str) -> None:
    async def score_all() -> list[SampleScores]:
        with ScorePool(toy, jobs=2) as pool:
            return await asyncio.gather(*(pool.score(*sample(f"text {number}")) for number in range(700)))

    rows = asyncio.run(score_all())
    assert [row.sample for row in rows] == [f"id of text {number}" for number in range(700)]
    assert all(counts(row) == RIGHT for row in rows)


def test_leaving_with_an_exception_waits_for_nobody(toy: str) -> None:
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ScorePool(toy, jobs=1) as pool:
        futures = [pool.submit(*sample("hang")) for _ in range(3)]
        raise KeyboardInterrupt
    assert time.monotonic() - start < 5
    assert all(future.done() for future in futures)


def test_an_interrupted_event_loop_waits_for_nobody(toy: str) -> None:
    async def score_for_ever() -> None:
        with ScorePool(toy, jobs=1) as pool:
            async with asyncio.timeout(0.5):
                await pool.score(*sample("hang"))

    start = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(score_for_ever())
    assert time.monotonic() - start < 5


def test_wrong_names_are_refused_before_anything_starts(toy: str) -> None:
    with pytest.raises(UsageError):
        ScorePool("no_such_benchmark")
    with pytest.raises(ProfileError):
        ScorePool(toy, ["stripp"])


def test_workers_that_cannot_start_are_one_clear_error(toy: str) -> None:
    pool = ScorePool(toy, jobs=1)
    Path(toy).unlink()
    with pool, pytest.raises(LoupeError, match="no scoring process can be started: UsageError"):
        pool.submit(*sample("text")).result(timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_die_with_a_killed_parent_even_when_stuck(toy: str, tmp_path: Path) -> None:
    script = f"""
from loupe.scoring.pool import ScorePool
from loupe.types import Prediction, Sample
with ScorePool({toy!r}, jobs=1) as pool:
    first = pool.submit(Sample(id="a", truth=""), Prediction(sample="a", text="pid")).result()
    pool.submit(Sample(id="b", truth=""), Prediction(sample="b", text="hang"))
    print(int(first.scores[0].counts[0]), flush=True)
    input()
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert Path(f"/proc/{worker}").exists()
        parent.send_signal(signal.SIGKILL)
    assert _ends(worker)


def _ends(pid: int) -> bool:
    """Whether the process ends soon; nobody here can wait for it."""
    deadline = time.monotonic() + 10
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_where_the_machines_that_score_are_gone_whoever_waits_is_told(toy: str) -> None:
    class Gone(Here):
        def line(self) -> Line:
            raise LoupeError("the cluster does not answer any more")

    async def ask() -> None:
        with ScorePool(toy, (), jobs=1, hands=Gone()) as pool:
            await asyncio.wait_for(pool.score(Sample(id="a", truth="x"), Prediction(sample="a", text="x")), 20)

    with pytest.raises(LoupeError, match="the cluster does not answer any more"):
        asyncio.run(ask())


def test_a_score_that_came_with_the_word_that_its_batch_was_taken_is_not_waited_for() -> None:
    class Said(LocalLine):
        reads = 0

        def read(self, seconds: float) -> bytes | None:
            self.reads += 1
            return frame(b"") + frame(msgspec.msgpack.encode(Scored(seconds=1.5))) if self.reads == 1 else None

    line = Said()
    worker = Worker(line)
    try:
        assert worker.receive(timeout=5, tick=lambda: None).seconds == 1.5 and line.reads == 1
    finally:
        worker.close()
