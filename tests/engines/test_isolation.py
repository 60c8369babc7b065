"""Worker processes: real crashes, hangs, kills and leftovers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, MissingToolError, RejectedError
from loupe.types import Output, Request
from loupe.workers.pool import WorkerPool, worker_pool

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def toy_pool(*, workers: int = 1, **settings: Any) -> AsyncIterator[WorkerPool]:
    async with worker_pool("tests.support.engine_functions:load", settings, workers=workers) as pool:
        yield pool


async def ask(pool: WorkerPool, prompt: str, *, timeout: float = 60) -> Output:
    return await pool.ask(Request(id="p", prompt=prompt), timeout=timeout)


def one(prompt: str, *, timeout: float = 60) -> tuple[Output | BaseException, Output]:
    """What one prompt gives, and the answer to the next one."""

    async def run() -> tuple[Output | BaseException, Output]:
        async with toy_pool() as pool:
            try:
                first: Output | BaseException = await ask(pool, prompt, timeout=timeout)
            except EngineError as error:
                first = error
            return first, await ask(pool, "fine")

    return asyncio.run(run())


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text() if sys.platform == "linux" else ""
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return ") Z " not in stat


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("prompt", "what"), [("segfault", "SIGSEGV"), ("exit", "exit code 7")])
def test_a_crash_is_an_error_of_its_page_alone(prompt: str, what: str) -> None:
    error, after = one(prompt)
    assert isinstance(error, EngineError)
    assert error.message == f"the worker process died ({what}) on this page"
    assert after.text == "read p"


@pytest.mark.parametrize("prompt", ["hang", "hang-in-c"])
def test_a_hang_is_a_timeout_of_its_page_alone(prompt: str) -> None:
    error, after = one(prompt, timeout=0.3)
    assert isinstance(error, EngineTimeoutError)
    assert "0.3 s" in error.message
    assert after.text == "read p"


@pytest.mark.parametrize(
    ("prompt", "kind", "message"),
    [
        ("raise", EngineError, "ValueError: bad value"),
        ("refuse", RejectedError, "not this page"),
        ("sys.exit", EngineError, "SystemExit: enough"),
        ("surrogate", EngineError, "UnicodeEncodeError"),
    ],
)
def test_an_exception_keeps_its_kind_and_its_worker(prompt: str, kind: type[EngineError], message: str) -> None:
    async def run() -> tuple[str, str]:
        async with toy_pool() as pool:
            before = (await ask(pool, "pid")).text
            with pytest.raises(kind, match=message) as caught:
                await ask(pool, prompt)
            assert type(caught.value) is kind
            return before, (await ask(pool, "pid")).text

    before, after = asyncio.run(run())
    assert before == after


def test_other_pages_in_flight_do_not_notice_a_crash() -> None:
    async def run() -> list[Output | BaseException]:
        async with toy_pool(workers=3) as pool:
            prompts = ["sleep 0.5", "segfault", "exit", "sleep 0.5", "fine", "fine"]
            return await asyncio.gather(*(ask(pool, prompt) for prompt in prompts), return_exceptions=True)

    answers = asyncio.run(run())
    assert [isinstance(answer, Output) for answer in answers] == [True, False, False, True, True, True]


def test_the_engine_is_loaded_once_per_worker_and_only_as_often_as_needed(tmp_path: Path) -> None:
    mark = tmp_path / "loads"

    async def run() -> None:
        async with toy_pool(workers=4, mark=str(mark)) as pool:
            for _ in range(5):
                await ask(pool, "fine")

    asyncio.run(run())
    assert len(mark.read_text().splitlines()) == 1


def test_noise_of_an_engine_disturbs_neither_its_answer_nor_our_output(capfd: pytest.CaptureFixture[str]) -> None:
    answer, after = one("noise")
    assert isinstance(answer, Output)
    assert (answer.text, after.text) == ("read p", "read p")
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_an_output_keeps_its_fields_and_facts_arrive() -> None:
    async def run() -> tuple[Output, dict[str, str]]:
        async with toy_pool() as pool:
            return await ask(pool, "output"), pool.facts

    output, facts = asyncio.run(run())
    assert output == Output(text="t", finish_reason="length", output_tokens=3)
    assert facts == {"model": "toy"}


def test_an_engine_that_cannot_be_loaded_says_so_before_the_first_page() -> None:
    async def run(fail: str) -> None:
        async with toy_pool(fail=fail):
            raise AssertionError("it opened")

    with pytest.raises(MissingToolError, match="models are not here") as missing:
        asyncio.run(run("missing"))
    assert missing.value.hint == "pip install models"
    with pytest.raises(EngineUnavailableError, match=r"exit code 3.*model file is corrupt"):
        asyncio.run(run("crash"))


def test_a_worker_killed_while_idle_is_replaced_without_an_error() -> None:
    async def run() -> str:
        async with toy_pool() as pool:
            pid = int((await ask(pool, "pid")).text)
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(wait_until, lambda: not alive(pid))
            return (await ask(pool, "fine")).text

    assert asyncio.run(run()) == "read p"


def test_closing_leaves_no_process_behind_even_one_that_hangs() -> None:
    async def run() -> list[int]:
        async with toy_pool(workers=2) as pool:
            pids = [int((await ask(pool, "pid")).text)]
            hanging = asyncio.create_task(ask(pool, "child"))
            await asyncio.sleep(0.5)
            pids += [int(pid) for pid in children(pids[0])]
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        return pids

    pids = asyncio.run(run())
    assert len(pids) == 2 or sys.platform != "linux"
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_what_a_crashed_engine_started_is_ended_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    error, after = one(f"leave-a-child {mark}")
    assert isinstance(error, EngineError)
    assert "exit code 7" in error.message
    assert after.text == "read p"
    assert wait_until(lambda: not alive(int(mark.read_text())), seconds=5)


def test_of_an_engine_that_forked_only_one_process_answers() -> None:
    answer, after = one("fork")
    assert isinstance(answer, Output)
    assert (answer.text, after.text) == ("read p", "read p")


def test_an_exception_says_where_in_the_users_code_it_was_raised() -> None:
    error, _ = one("raise")
    assert isinstance(error, EngineError)
    assert re.fullmatch(r"engine_functions\.py:\d+: ValueError: bad value", error.message)


@pytest.mark.parametrize("kilobytes", [1, 63, 64, 65, 300, 5_000])
def test_answers_of_every_size_arrive_whole_from_two_workers(kilobytes: int) -> None:
    async def run() -> list[Output]:
        async with toy_pool(workers=2) as pool:
            return await asyncio.gather(*(ask(pool, f"answer {kilobytes * 1000 + i}") for i in range(12)))

    assert [len(output.text) for output in asyncio.run(run())] == [kilobytes * 1000 + i for i in range(12)]


def test_giving_up_on_a_page_frees_its_worker_for_the_next() -> None:
    async def run() -> str:
        async with toy_pool() as pool:
            task = asyncio.create_task(ask(pool, "hang"))
            await asyncio.sleep(0.3)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return (await ask(pool, "fine")).text

    assert asyncio.run(run()) == "read p"


PARENT = """
import asyncio, sys
import tests.conftest
from tests.engines.test_isolation import ask, toy_pool
async def main():
    async with toy_pool(workers=2) as pool:
        first = asyncio.create_task(ask(pool, "hang-in-c"))
        await asyncio.sleep(0.1)
        print((await ask(pool, "pid")).text, flush=True)
        await first
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_however_it_ends(how: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip().isdigit()
        workers = children(parent.pid)
        assert len(workers) == 2
        os.kill(parent.pid, how)
        parent.wait(timeout=30)
    assert wait_until(lambda: not any(alive(pid) for pid in workers))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_does_not_reach_a_worker() -> None:
    async def run() -> tuple[str, int]:
        async with toy_pool() as pool:
            pid = int((await ask(pool, "pid")).text)
            reading = asyncio.create_task(ask(pool, "sleep 0.5"))
            await asyncio.sleep(0.1)
            os.kill(pid, signal.SIGINT)
            return (await reading).text, os.getpgid(pid)

    text, group = asyncio.run(run())
    assert text == "read p"
    assert group != os.getpgid(0)


def children(pid: int) -> list[int]:
    """Processes started by `pid` (Linux)."""
    tasks = Path(f"/proc/{pid}/task")
    found = [(task / "children").read_text().split() for task in tasks.glob("*")]
    return [int(child) for children in found for child in children]
