"""Asking a function: plain ones in a thread of their own, one call at a time; with a batch, whole lists of pages.

One page that fails costs one page: a batch that raises is asked again page by page.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeAlias

import msgspec

from loupe.data.pages import load_page
from loupe.engines.in_process.functions import Function, Page, Wants
from loupe.errors import EngineError, EngineTimeoutError, UsageError, in_words, self_cancelled
from loupe.typed import encode_json, json_decoder
from loupe.types import Engine, Output, Request

#: The last pages of a run fill no batch: after so many seconds without another page it is not waited for.
PATIENCE = 0.05
Answer: TypeAlias = "asyncio.Future[Output]"
Work: TypeAlias = "tuple[Callable[[], Any], asyncio.Future[Any]]"


@asynccontextmanager
async def open_function(
    function: Function, *, batch: int | None = None, calls: int = 1, timeout: float | None = None
) -> AsyncIterator[Engine]:
    """The engine that asks this function, with up to `calls` calls at a time. `timeout` ends calls that are awaited."""
    threads = [] if function.is_async else [_Thread() for _ in range(calls)]
    caller = _Caller(function, threads, timeout)
    try:
        if batch is None:
            yield Engine(predict=caller.one)
            return
        batches = _Batches(caller, batch, asyncio.Semaphore(calls))
        yield Engine(predict=batches.predict)
    finally:
        for thread in threads:
            thread.end()


class _Thread:
    """A thread that calls one function after another. A daemon: a call that never ends does not keep Python from it."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name="loupe-function", daemon=True).start()

    def do(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """The value of a call, or what it raises."""
        found: asyncio.Future[Any] = self._loop.create_future()
        self._work.put((call, found))
        return found

    def end(self) -> None:
        """Take no more calls."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            call, found = work
            if found.cancelled():
                continue
            try:
                value, error = call(), None
            except BaseException as raised:  # noqa: BLE001 - the border of a thread: it is raised where it is awaited
                value, error = None, raised
            try:
                self._loop.call_soon_threadsafe(_settle, found, value, error)
            except RuntimeError:  # the run was given up, and its loop is closed
                return


def _settle(found: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if found.done():
        return
    if error is None:
        found.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        found.set_exception(error)
    else:
        found.set_exception(EngineError(in_words(error)))


@dataclass(slots=True)
class _Caller:
    """Calls the function with what it wants, and makes outputs of what it returns."""

    function: Function
    threads: list[_Thread]
    timeout: float | None
    _free: asyncio.Queue[_Thread] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        for thread in self.threads:
            self._free.put_nowait(thread)

    async def one(self, request: Request) -> Output:
        """The answer to one page."""
        return self._output(await self._call(lambda: given(request, self.function.wants)))

    async def many(self, requests: Sequence[Request]) -> list[Output]:
        """The answers to a list of pages, in its order. Raises EngineError where there are more or fewer."""
        found = await self._call(lambda: [given(each, self.function.wants) for each in requests])
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise EngineError(f"{self.function.name} got {len(requests)} pages and returned no list of texts")
        if len(found) != len(requests):
            raise EngineError(f"{self.function.name} got {len(requests)} pages and returned {len(found)} texts")
        return [self._output(each) for each in found]

    async def _call(self, argument: Callable[[], Any]) -> Any:
        if not self.threads:
            # Pictures are loaded in a thread, so that they hold nobody up.
            value = argument() if self.function.wants != "image" else await asyncio.to_thread(argument)
            try:
                return await asyncio.wait_for(self._awaited(value), self.timeout)
            except TimeoutError as error:
                within = f"within {self.timeout:g} s" if self.timeout else f"({error or 'TimeoutError'})"
                raise EngineTimeoutError(f"no answer {within}") from None
            except asyncio.CancelledError as error:
                raise self_cancelled(error) from None
        thread = await self._free.get()
        try:
            return await thread.do(lambda: self.function.call(argument()))
        finally:
            self._free.put_nowait(thread)

    async def _awaited(self, value: Any) -> Any:
        try:
            return await self.function.call(value)
        except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - such as SystemExit: of one page, and it would end the loop
            raise EngineError(in_words(error)) from None

    def _output(self, found: Any) -> Output:
        if isinstance(found, str):
            return Output(text=str.__str__(found))  # a subclass, such as numpy's, cannot be stored
        if isinstance(found, Output):
            return self._checked(found)
        if inspect.iscoroutine(found):
            found.close()
            raise UsageError(f"{self.function.name} returned a coroutine", hint="write it as async def")
        raise EngineError(f"{self.function.name} returned {type(found).__name__}, not a str")

    def _checked(self, found: Output) -> Output:
        """What can be stored of an output. Raises EngineError for one that cannot."""
        try:
            return json_decoder(Output).decode(encode_json(found))
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise EngineError(f"{self.function.name} returned an invalid Output: {error}") from None


def given(request: Request, wants: Wants) -> Any:
    """What the function is called with for one page."""
    if wants == "request":
        return request
    page = Page(request.id, request.prompt, request.text, request.task, request.images)
    return load_page(page._first) if wants == "image" else page


@dataclass(slots=True)
class _Batches:
    """Collects pages until a batch is full, or no further one comes."""

    caller: _Caller
    size: int
    places: asyncio.Semaphore
    _waiting: deque[tuple[Request, Answer]] = field(default_factory=deque)
    _timer: asyncio.TimerHandle | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def predict(self, request: Request) -> Output:
        """The answer to a page, which comes with those of others."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        self._waiting.append((request, answer))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if len(self._waiting) >= self.size:
            self._send()
        else:
            self._timer = loop.call_later(PATIENCE, self._send)
        return await answer

    def _send(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(self.size, len(self._waiting)))]
        if batch:
            task = asyncio.create_task(self._ask(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, batch: Sequence[tuple[Request, Answer]]) -> None:
        async with self.places:
            wanted = [(request, answer) for request, answer in batch if not answer.done()]
            if not wanted:
                return
            try:
                outputs: list[Output] = await self.caller.many([request for request, _ in wanted])
            except Exception as error:  # noqa: BLE001 - the border to the caller's function: one page must not cost others
                await self._one_by_one(wanted, error)
                return
            for (_, answer), output in zip(wanted, outputs, strict=True):
                if not answer.done():
                    answer.set_result(output)

    async def _one_by_one(self, batch: Sequence[tuple[Request, Answer]], error: Exception) -> None:
        for request, answer in batch:
            if answer.done():
                continue
            try:
                if len(batch) == 1:
                    raise error
                [output] = await self.caller.many([request])
                answer.set_result(output)
            except Exception as raised:  # noqa: BLE001 - the same border: it is the error of this page
                if not answer.done():
                    answer.set_exception(raised)
