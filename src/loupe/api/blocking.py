"""Waiting for a run from code that is not asynchronous: it goes on in a thread with an event loop of its own.

So it works in a notebook, whose own loop is running, and from any thread. Ctrl-C in the main thread reaches it.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Stops:
    """Ctrl-C in the main thread, handed on to whoever watches the run in another one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._act: Callable[[], None] = lambda: None
        self._early = 0

    @contextmanager
    def told(self, act: Callable[[], None]) -> Iterator[None]:
        """In the block, in a running event loop, each Ctrl-C calls `act`."""
        self._act, self._loop = act, asyncio.get_running_loop()
        for _ in range(self._early):
            act()
        try:
            yield
        finally:
            self._loop = None

    def stop(self) -> None:
        """Somebody has pressed Ctrl-C."""
        if self._loop is None:
            self._early += 1
        else:
            self._loop.call_soon_threadsafe(self._act)


def finish(work: Callable[[], Coroutine[Any, Any, T]], stops: Stops) -> T:
    """What comes of `work`, which is done in a thread with its own event loop. Raises what it raises."""
    found: Future[T] = Future()

    def act() -> None:
        try:
            found.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - the border of a thread: it is raised where it is waited for
            found.set_exception(error)

    # A display of a notebook knows by the context which cell it belongs to.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(act,), name="loupe-run", daemon=True)
    with _interrupts_go_to(stops):
        thread.start()
        try:
            thread.join()
        except BaseException:  # somebody else's way to end a call, such as a timeout by a signal
            stops.stop()
            stops.stop()
            raise
    return found.result()


@contextmanager
def _interrupts_go_to(stops: Stops) -> Iterator[None]:
    """In the block Ctrl-C stops the run well, where this is the main thread and Ctrl-C does what it usually does."""
    usual = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not usual:
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: stops.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
