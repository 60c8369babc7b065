"""The automatic number of requests in flight, against servers whose capacity it does not know."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from loupe.inference.concurrency import FIRST, AdaptivePlaces, Attempt, Places

SERVICE_SECONDS = 0.006


class Server:
    """Answers `capacity` requests at once; what is more than that waits, slows all down, or is refused."""

    def __init__(self, capacity: int, beyond: str) -> None:
        self.capacity, self.beyond = capacity, beyond
        self.slots = asyncio.Semaphore(capacity)
        self.active = self.most = 0
        self.dice = random.Random(7)

    async def ask(self) -> Attempt:
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            if self.beyond == "refuses" and self.active > self.capacity:
                return "refused"
            seconds = SERVICE_SECONDS * self.dice.uniform(0.5, 1.5)
            if self.beyond == "slows" and self.active > self.capacity:
                seconds *= (self.active / self.capacity) ** 1.5
            if self.beyond == "queues":
                async with self.slots:
                    await asyncio.sleep(seconds)
            else:
                await asyncio.sleep(seconds)
            return "answered"
        finally:
            self.active -= 1


async def ask_many(places: Places, ask: Callable[[], Awaitable[Attempt]], count: int, workers: int = 64) -> list[int]:
    """The limit at the end of each of so many answers."""
    limits: list[int] = []
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            async with places.place():
                places.note(outcome := await ask())
                while outcome != "answered":
                    await asyncio.sleep(SERVICE_SECONDS)
                    places.note(outcome := await ask())
            limits.append(places.limit)

    await asyncio.gather(*(work() for _ in range(workers)))
    return limits


@pytest.mark.parametrize("beyond", ["queues", "slows", "refuses"])
@pytest.mark.parametrize("capacity", [2, 16])
def test_the_limit_finds_what_the_server_can_take(beyond: str, capacity: int) -> None:
    async def run() -> list[int]:
        return await ask_many(AdaptivePlaces(most=64), Server(capacity, beyond).ask, 40 * capacity + 300)

    limits = asyncio.run(run())
    settled = sorted(limits[len(limits) // 2 :])
    middle = settled[len(settled) // 2]
    assert capacity * 0.6 <= middle <= max(2.6 * capacity, FIRST + 4), limits[::20]


def test_a_refusal_and_a_timeout_take_places_away_at_once_and_only_once_a_round() -> None:
    async def run() -> tuple[int, int, int]:
        places = AdaptivePlaces(first=20)
        release = asyncio.Event()

        async def hold() -> None:
            async with places.place():
                await release.wait()

        tasks = [asyncio.create_task(hold()) for _ in range(20)]
        await asyncio.sleep(0)
        places.note("refused")
        after = places.limit
        for _ in range(5):
            places.note("refused")
        same = places.limit
        release.set()
        await asyncio.gather(*tasks)
        other = AdaptivePlaces(first=20)
        other.note("timeout")
        return after, same, other.limit

    assert asyncio.run(run()) == (14, 14, 10)


@pytest.mark.parametrize("limit", [1, 5])
def test_no_more_than_the_limit_are_ever_in_flight_and_nobody_waits_for_ever(limit: int) -> None:
    async def run() -> tuple[int, int]:
        server, places = Server(100, "queues"), Places(limit)
        done = await asyncio.wait_for(ask_many(places, server.ask, 60), timeout=60)
        return server.most, len(done)

    assert asyncio.run(run()) == (limit, 60)


def test_who_gives_up_waiting_takes_no_place_with_it() -> None:
    async def run() -> int:
        places = Places(1)

        async def take() -> None:
            async with places.place():
                await asyncio.sleep(0)

        async with places.place():
            waiting = [asyncio.create_task(take()) for _ in range(4)]
            await asyncio.sleep(0)
            waiting[0].cancel()
        waiting[1].cancel()  # its turn has just come
        await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), timeout=30)
        return places.taken

    assert asyncio.run(run()) == 0
