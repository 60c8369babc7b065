"""What the progress says of this moment: the rate of the last seconds, the limit of `-n auto`, servers and money."""

from __future__ import annotations

import asyncio
import time

from loupe.inference.concurrency import FIRST
from loupe.inference.progress import LIVE_SECONDS, Progress
from loupe.inference.retries import Policy
from loupe.inference.scheduler import Scheduler
from loupe.results.status_line import status_line
from loupe.types import Engine, Output, Prediction, Request


def test_the_rate_of_now_is_that_of_the_last_seconds_and_stands_beside_the_mean() -> None:
    progress = Progress(total=1000)
    progress.started = time.monotonic() - 100
    for _ in range(60):
        progress.count(Prediction(sample="a"))
    assert "0.60 pages/s (now 2.00)" in status_line(progress)
    progress._ended.extendleft([time.monotonic() - LIVE_SECONDS - 1] * 500)
    assert progress.live_rate == 2.0
    progress.started = time.monotonic() - LIVE_SECONDS / 2
    assert progress.live_rate is None and "now" not in status_line(progress)


def test_the_limit_of_auto_is_told_while_it_moves() -> None:
    progress, limits, lines = Progress(total=400), [], []

    async def predict(request: Request) -> Output:
        await asyncio.sleep(0.002)
        return Output(text="read")

    async def keep(prediction: Prediction) -> None:
        assert progress.limit is not None
        limits.append(progress.limit())
        lines.append(status_line(progress))

    engine = Engine(predict=predict, status=lambda: "1 of 2 servers out")
    requests = iter([Request(id=str(number)) for number in range(400)])
    asyncio.run(Scheduler(engine, Policy(concurrency="auto"), progress, keep).ask_all(requests))
    assert limits[0] == FIRST and max(limits) > FIRST
    assert f"{FIRST} in flight of at most {FIRST}" in lines[0]
    assert lines[-1].endswith("1 of 2 servers out")
