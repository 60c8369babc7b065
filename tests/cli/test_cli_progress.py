"""What a person sees while a run goes on, and what Ctrl-C does."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from loupe.inference.progress import Progress
from loupe.results.status_line import status_line
from loupe.types import Estimate, Measure

#: A run that ends when it is asked to: the display and the signals are real, only the work is not.
WORK = """
import asyncio, sys
from loupe.cli.shared.progress import supervise
from loupe.inference.progress import Progress

async def work(progress):
    progress.total, progress.in_flight = 10, 3
    if "deaf" not in sys.argv:
        progress.watch(asyncio.current_task())
    print("ready", flush=True)
    try:
        while not progress.stopping or "slow" in sys.argv:
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        return "given up"
    return "finished"

progress = Progress(engine="reader", benchmark="toy")
print(asyncio.run(supervise(work(progress), progress, plain="plain" in sys.argv)))
"""


def start(*words: str, **streams: int) -> subprocess.Popen[str]:
    env = {**os.environ, "TERM": "xterm"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WORK), *words], text=True, env=env, **pipes)  # type: ignore[call-overload]
    assert process.stdout.readline() == "ready\n"
    return process  # type: ignore[no-any-return]


def read(terminal: int) -> str:
    ready, _, _ = select.select([terminal], [], [], 20)
    return os.read(terminal, 65536).decode() if ready else ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_interrupt_lets_what_is_in_flight_finish(number: signal.Signals) -> None:
    process = start()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (out, err) == ("finished\n", "finishing 3 in flight; again to stop now\n")


@pytest.mark.parametrize(("words", "end"), [(("slow",), "given up\n"), (("slow", "deaf"), "given up\n")])
def test_a_second_interrupt_stops_now(words: tuple[str, ...], end: str) -> None:
    process = start(*words)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "finishing 3 in flight; again to stop now\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (out, err) == (end, "stopping now\n")


def test_on_a_terminal_one_block_lives_and_goes_away() -> None:
    ours, theirs = pty.openpty()
    process = start(stderr=theirs)
    os.close(theirs)
    seen = ""
    while "0/10" not in seen and (more := read(ours)):
        seen += more
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    os.close(ours)
    assert "reader on toy" in seen and "0/10" in seen
    assert out == "finished\n"


def test_the_line_names_every_counter_that_is_not_zero() -> None:
    progress = Progress(engine="reader", benchmark="toy", total=100, resumed=10, done=40, in_flight=4, retries=2)
    progress.started = time.monotonic() - 20
    progress.output_tokens = 2000
    progress.outcomes = Counter(ok=33, error=2, truncated=3, repeated=1, empty=1)
    progress.headline = (Measure(name="similarity"), Estimate(value=0.9, n=40))
    line = status_line(progress)
    assert line == (
        "50/100 · 2.00 pages/s · 100 tokens/s · 25 s left · 4 in flight · 10 already done · 2 retries · 2 failed"
        " · 3 truncated · 1 empty · 1 loops · similarity 90.00 % on 40 so far"
    )


def test_the_line_at_the_start_promises_nothing() -> None:
    assert status_line(Progress(total=5, note="opening")) == "0/5 · 0.00 pages/s · opening"


def test_plain_shows_no_block_even_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = start("plain", stderr=theirs)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    os.close(theirs)
    assert read(ours).strip() == "finishing 3 in flight; again to stop now"
    os.close(ours)
