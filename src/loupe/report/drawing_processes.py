"""Processes that draw for the report: what hangs or dies there costs its own piece of work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from loupe.engines.workers.isolation import WorkerPool, worker_pool
from loupe.types import Output


@dataclass(frozen=True, slots=True)
class Drawers:
    """Worker processes for callers that wait in threads of their own. Use `drawers`, which opens and closes them."""

    loop: asyncio.AbstractEventLoop
    pool: WorkerPool

    def submit(self, job: object, *, seconds: float) -> Future[Output]:
        """Have a worker do a piece of work; `seconds` count from when it takes it.

        The future raises EngineError where the worker fails, hangs or dies, EngineUnavailableError if none can start.
        """
        return asyncio.run_coroutine_threadsafe(self.pool.ask(job, timeout=seconds), self.loop)


@contextmanager
def drawers(factory: str, workers: int) -> Iterator[Drawers]:
    """Up to `workers` processes that call `factory` (`module:function`) once; what still runs at the end is stopped."""
    loop = asyncio.new_event_loop()
    # The processes end with the thread that started them, so it lives as long as they may.
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = worker_pool(factory, {}, workers=workers, lazy=True)
    try:
        pool = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield Drawers(loop, pool)
        finally:
            asyncio.run_coroutine_threadsafe(_end(pool), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(pool: WorkerPool) -> None:
    """Stop the workers, and give up whoever waits for one."""
    pool.close()
    waiting = asyncio.all_tasks() - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
