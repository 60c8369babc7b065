"""How near the automatic number of requests in flight comes to the best fixed one, on servers of hidden capacity.

    python perf/adaptive_concurrency.py [--requests 3000] [--capacities 4,16,48]

The servers are coroutines in this process (about 50 ms a request, half as much more or less) that answer so many at
once; what is more waits, slows all down, or is refused with 429. Printed: answers per second with the best of some
fixed numbers, with the automatic one from its start on, and without its first third, in which it searches. Goal: within
10 % of the best fixed number.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engines import test_adaptive_concurrency as servers

from loupe.inference.concurrency import AdaptivePlaces, Places

servers.SERVICE_SECONDS = 0.05


async def rates(places: Places, capacity: int, beyond: str, requests: int) -> tuple[float, float]:
    """Answers per second of all requests, and of the last two thirds."""
    server, ended, began = servers.Server(capacity, beyond), [], time.monotonic()

    async def ask() -> servers.Attempt:
        outcome = await server.ask()
        if outcome == "answered":
            ended.append(time.monotonic())
        return outcome

    await servers.ask_many(places, ask, requests, workers=256)
    third = requests // 3
    return requests / (ended[-1] - began), (requests - third) / (ended[-1] - ended[third])


def main() -> None:
    """Measure and print one line per server."""
    parser = argparse.ArgumentParser(description="Automatic against fixed numbers of requests in flight.")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--capacities", default="4,16,48")
    chosen = parser.parse_args()
    print(f"{'beyond its capacity':<20}{'capacity':>9}{'best fixed':>12}{'auto':>8}{'ratio':>8}{'settled':>9}")
    for beyond in ("queues", "slows", "refuses"):
        for capacity in map(int, chosen.capacities.split(",")):
            fixed = max(
                asyncio.run(rates(Places(number), capacity, beyond, min(chosen.requests, 40 * capacity)))[0]
                for number in (max(1, capacity * 3 // 4), capacity, capacity * 2)
            )
            auto, late = asyncio.run(rates(AdaptivePlaces(), capacity, beyond, chosen.requests))
            print(
                f"{beyond:<20}{capacity:>9}{fixed:>12.1f}{auto:>8.1f}{auto / fixed:>8.2f}{late / fixed:>9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
