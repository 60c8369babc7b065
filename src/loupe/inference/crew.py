"""Many at work on one list: the first failure ends all, and what was paid for is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from loupe.errors import AccountError
from loupe.inference.progress import Progress


async def work_together(
    work: Iterable[Coroutine[None, None, None]], progress: Progress, refuse: Callable[[AccountError], None]
) -> None:
    """Run all of it at once, until all have ended or the first one fails. Raises what that one raised.

    Where a server refuses the account, `refuse` hears of it, has nothing new begun, and what is in flight may end: it
    is charged. `progress.stop_now()` ends everything.
    """
    tasks = [asyncio.create_task(each) for each in work]
    for task in tasks:
        progress.watch(task)
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failure = next((error for task in done if not task.cancelled() and (error := task.exception())), None)
        if isinstance(failure, AccountError):
            refuse(failure)
            await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failure is not None:
        raise failure
