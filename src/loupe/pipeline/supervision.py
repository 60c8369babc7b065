"""Watching over a run while it goes on; asked once it stops well, asked twice it stops now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from loupe.inference.progress import Progress

T = TypeVar("T")

POLL_SECONDS = 0.25
#: An engine that is still opening knows no tasks to stop; after this time the whole run is cancelled.
STOP_SECONDS = 3.0


async def watch(
    work: Awaitable[T],
    progress: Progress,
    *,
    told: Callable[[Callable[[], None]], AbstractContextManager[None]],
    refresh: Callable[[], None],
    say: Callable[[str], None],
) -> T:
    """Await `work` while its progress is shown. In the block of `told`, whoever wants it to stop calls its argument."""
    task = asyncio.ensure_future(work)

    def stop() -> None:
        if progress.stopping:
            say("stopping now")
            progress.stop_now()
            asyncio.get_running_loop().call_later(STOP_SECONDS, task.cancel)
        else:
            progress.request_stop()
            say(f"finishing {progress.in_flight} in flight; again to stop now")

    try:
        with told(stop):
            while not task.done():
                await asyncio.wait({task}, timeout=POLL_SECONDS)
                while progress.news:
                    say(progress.news.popleft())
                refresh()
    finally:
        if not task.done():
            task.cancel()
    return task.result()
