"""Several base URLs of one engine: least loaded first, dead ones out and back again, one health for the whole."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from loupe.engines.chat.endpoints import EndpointPool, Place
from loupe.engines.chat.http_failures import UnreachableError
from loupe.engines.openai import open_engine
from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError, TransientEngineError, UsageError
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.pipeline import Plan, infer
from loupe.runs.folder import RunFolder
from loupe.types import Request
from tests.support.asking import ASK, settings
from tests.support.chat_server import Received, Reply, chat_server
from tests.support.served import make_benchmark

QUICK = Policy(concurrency=8, backoff=0.01, backoff_cap=0.02, health_poll=0.05, health_limit=0.3)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a counter of the run, which tells nobody
            await asyncio.sleep(0.005)


def plan_of(folder: Path, urls: list[str], count: int, **keys: Any) -> Plan:
    _, profile = load_profile("openai", {"base_url": urls, "model": "test-model", **keys})
    words = make_benchmark(folder, [f"w{number}" for number in range(count)])
    return Plan(benchmark=str(words), label="pair", profile=profile, runs=folder / "runs", jobs=1, policy=QUICK)


def test_a_server_that_is_killed_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    seen: dict[str, Any] = {"back": 0, "out": False}

    def steady(request: Received) -> Reply:
        return Reply(text="read {prompt}", delay=0.0 if seen["back"] > 20 else 0.03)

    def returned(request: Received) -> Reply:
        seen["back"] += 1
        return Reply(text="read {prompt}", delay=0.005)

    async def main() -> tuple[RunFolder, Progress]:
        progress, first = Progress(), AsyncExitStack()
        async with chat_server(steady) as other:
            mortal = await first.enter_async_context(chat_server(Reply(text="read {prompt}", delay=0.03)))
            plan = plan_of(tmp_path, [mortal.url, other.url], 700)
            run = asyncio.create_task(infer(plan, progress))
            await until(lambda: len(mortal.requests) >= 30)
            await first.aclose()  # with requests in flight
            seen["urls"] = (mortal.url, other.url)
            await until(lambda: progress.done >= 120)
            seen["out"] = progress.status is not None and progress.status()
            async with chat_server(returned, port=mortal.port):
                return await run, progress

    folder, progress = asyncio.run(main())
    answers = folder.predictions()
    assert len(answers) == 700
    assert {(each.outcome, each.text == f"read {ident.partition('-')[2]}") for ident, each in answers.items()} == {
        ("ok", True)
    }
    by_server = Counter(each.endpoint for each in answers.values())
    assert by_server.keys() == set(seen["urls"])
    assert seen["back"] > 20 and by_server[seen["urls"][0]] >= seen["back"] + 15
    assert seen["out"] == "1 of 2 servers out" and progress.status is not None and progress.status() == ""
    assert progress.retries <= 8, "only what was in flight is asked again: nobody else had to wait"


def test_the_least_loaded_server_is_asked() -> None:
    async def main() -> tuple[int, int]:
        async with chat_server(Reply(delay=0.2)) as slow, chat_server(Reply(delay=0.01)) as fast:
            async with open_engine(settings([slow.url, fast.url], concurrency=4)) as engine:
                turns = asyncio.Semaphore(4)

                async def ask(number: int) -> None:
                    async with turns:
                        await engine.predict(Request(id=str(number), prompt="Read."))

                await asyncio.gather(*(ask(number) for number in range(40)))
            return len(slow.requests), len(fast.requests)

    slow, fast = asyncio.run(main())
    assert slow <= 12 and slow + fast == 40


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (Reply(status=500), 12),  # fails at once, so it is always the least loaded one
        (Reply(status=429, headers={"Retry-After": "30"}), 4),
        (Reply(status=500, raw=b"torch.OutOfMemoryError: CUDA out of memory"), 6),
        (Reply(raw=b"<html>"), 12),
    ],
)
def test_a_broken_server_draws_no_requests_to_itself(tmp_path: Path, fault: Reply, most: int) -> None:
    async def main() -> tuple[RunFolder, int, float]:
        async with chat_server(fault) as broken, chat_server(Reply(text="read {prompt}", delay=0.01)) as well:
            began = time.monotonic()
            folder = await infer(plan_of(tmp_path, [broken.url, well.url], 120), Progress())
            return folder, len(broken.requests), time.monotonic() - began

    folder, asked, seconds = asyncio.run(main())
    assert [each.outcome for each in folder.predictions().values()] == ["ok"] * 120
    assert 1 <= asked <= most + seconds * 3


def test_with_all_servers_dead_the_run_stops_and_goes_on_with_the_one_that_is_back(tmp_path: Path) -> None:
    async def main() -> tuple[int, RunFolder, Counter[str]]:
        async with AsyncExitStack() as stack:
            pair = [await stack.enter_async_context(chat_server(Reply(text="read {prompt}", delay=0.01))) for _ in "12"]
            plan = plan_of(tmp_path, [each.url for each in pair], 300)
            progress = Progress()
            run = asyncio.create_task(infer(plan, progress))
            await until(lambda: progress.done >= 40)
            await stack.aclose()
            with pytest.raises(EngineUnavailableError, match="health check"):
                await run
            async with chat_server("read {prompt}", port=pair[1].port) as back:
                again = Progress()
                return progress.done, await infer(plan, again), Counter({back.url: again.done})

    done, folder, second = asyncio.run(main())
    answers = folder.predictions()
    assert len(answers) == 300 and {each.outcome for each in answers.values()} == {"ok"}
    assert 40 <= done < 300
    assert sum(second.values()) >= 300 - done


def test_one_server_that_refuses_the_key_ends_the_run() -> None:
    async def main() -> None:
        async with (
            chat_server(Reply(status=403)) as one,
            chat_server(Reply(delay=0.01)) as two,
            open_engine(settings([one.url, two.url])) as engine,
        ):
            await asyncio.gather(engine.predict(ASK), engine.predict(ASK))

    with pytest.raises(EngineUnavailableError, match="refuses the key"):
        asyncio.run(main())


def test_while_one_server_is_dead_the_other_ones_wish_to_wait_is_no_error(tmp_path: Path) -> None:
    refused = {"until": 0.0}

    def busy(request: Received) -> Reply:
        left = refused["until"] - time.monotonic()
        return Reply(status=429, headers={"Retry-After": f"{left:.3f}"}) if left > 0 else Reply(text="read {prompt}")

    async def main() -> RunFolder:
        async with AsyncExitStack() as first, chat_server(busy) as other:
            dead = await first.enter_async_context(chat_server(Reply(text="read {prompt}")))
            plan = plan_of(tmp_path, [dead.url, other.url], 40)
            run = asyncio.create_task(infer(plan, Progress()))
            await until(lambda: len(dead.requests) + len(other.requests) >= 4)
            refused["until"] = time.monotonic() + 2.5  # longer than all attempts on a dead server take
            await first.aclose()
            return await run

    assert Counter(each.outcome for each in asyncio.run(main()).predictions().values()) == {"ok": 40}


def test_a_page_that_breaks_servers_is_not_handed_to_all_of_them_at_once() -> None:
    async def main() -> tuple[int, int]:
        poison = Reply(status=500)
        async with (
            chat_server(poison) as one,
            chat_server(poison) as two,
            open_engine(settings([one.url, two.url])) as engine,
        ):
            with pytest.raises(TransientEngineError, match="HTTP 500"):
                await engine.predict(ASK)
            return len(one.requests), len(two.requests)

    assert sum(asyncio.run(main())) == 1


def test_servers_of_two_models_are_refused_and_those_that_differ_are_noted(tmp_path: Path) -> None:
    def listed(model: str, length: int, version: str) -> dict[str, Any]:
        entry = {"id": model, "object": "model", "max_model_len": length}
        return {"/v1/models": {"object": "list", "data": [entry]}, "/version": {"version": version}}

    async def main(other: dict[str, Any]) -> RunFolder:
        first = chat_server(Reply(text="read {prompt}"), get=listed("test-model", 8192, "0.9.1"))
        async with first as one, chat_server(Reply(text="read {prompt}"), get=other) as two:
            return await infer(plan_of(tmp_path, [one.url, two.url], 4), Progress())

    unnamed = {"/props": {"build_info": "b1"}, **{"/v1/models": {"data": [{"id": "another"}]}}}
    with pytest.raises(UsageError, match="does not serve 'test-model', only: another"):
        asyncio.run(main(unnamed))
    info = asyncio.run(main(listed("test-model", 4096, "0.8"))).info
    assert (info.facts["server_version"], info.facts["max_model_len"]) == ("0.8, 0.9.1", "4096, 8192")
    assert "vllm 0.9.1, context 8192; http" in info.notes[-1] and "vllm 0.8, context 4096" in info.notes[-1]


def test_an_older_answer_does_not_end_the_pause_that_a_server_asked_for() -> None:
    async def main() -> None:
        places = [Place("a"), Place("b")]
        pool = EndpointPool(places, lambda place: asyncio.sleep(0, True), clock=lambda: 0.0)
        for place in places:
            with pool.asking(place), pytest.raises(TransientEngineError), pool.asking(place):
                raise TransientEngineError("HTTP 429: slow down", retry_after=30, rate=True)
        with pytest.raises(TransientEngineError, match="slow down") as error:
            pool.choose()
        assert error.value.rate and error.value.retry_after == 30

    asyncio.run(main())


def test_a_server_that_came_later_and_lists_no_models_gets_requests() -> None:
    async def main() -> int:
        async with chat_server(models=404) as known:
            port = known.port
        async with (
            chat_server(Reply(delay=0.05)) as well,
            open_engine(settings([well.url, known.url])) as engine,
            chat_server(port=port, models=404) as late,
            asyncio.timeout(20),
        ):
            while not late.requests:
                await asyncio.gather(engine.predict(ASK), engine.predict(ASK))
            return len(late.requests)

    assert asyncio.run(main()) > 0


def test_the_pause_of_a_server_that_stays_dead_doubles_up_to_a_minute() -> None:
    now, checked = 100.0, []

    async def check(place: Place) -> bool:
        checked.append(now)
        return False

    async def main() -> list[float]:
        nonlocal now
        dead, well = Place("a"), Place("b")
        pool = EndpointPool([dead, well], check, clock=lambda: now)
        with pytest.raises(TransientEngineError), pool.asking(dead):
            raise UnreachableError("gone")
        pauses = []
        for _ in range(9):
            pauses.append(dead.out_until - now)
            now = dead.out_until
            assert pool.choose() is well
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        pool.bring_back(dead)
        assert pool.choose() is well or pool.choose() is dead
        return pauses

    assert asyncio.run(main()) == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(checked) == 9
