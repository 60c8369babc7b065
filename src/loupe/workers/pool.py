"""Run engines in Python in worker processes: a crash or a hang costs one sample, never the run.

Each worker is a plain subprocess on its own socket rather than a `multiprocessing` pool: the caller's main module is
not run again, a worker that dies can neither break a queue that others use nor the pool, nothing that comes back is
unpickled, and a worker ends by itself when its parent is gone, however that went. The worker's side is `child.py`.

A worker runs in Loupe's own Python or in one that has no Loupe, each with words of its own; every message travels in a
frame of `loupe.workers.child`, whatever the words are.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

import loupe.errors
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    TransientEngineError,
    WriteError,
)
from loupe.helpers import for_children
from loupe.typed import msgpack_decoder
from loupe.types import Output
from loupe.workers.child import HEAD, Reply, Start, frame
from loupe.workers.limits import how_it_ended, may_lack_memory, too_much_or_crash
from loupe.workers.process import Process, own_command

#: Seconds between two looks at whether the process still lives; a grandchild may keep its socket open.
_TICK = 0.25
#: Seconds that a process gets to end after it closed its connection.
_LAST_MOMENTS = 2.0
#: A longer answer than this, in bytes, is refused instead of read.
_LARGEST_REPLY = 256 * 10**6


@dataclass(slots=True)
class _Place:
    """One of the pool's places: what a process in it gets, and the process, once there is one."""

    environment: Mapping[str, str]
    worker: _Worker | None = None


class WorkerPool:
    """A process for each of the `environments`, with the engine loaded once; `facts` is what it says about itself.

    Use `worker_pool` or `interpreter_pool`, which open and close it. One process starts at once, so that an engine that
    cannot be loaded is known before the first sample; the others start when there is work for them.
    """

    def __init__(
        self, interpreter: Interpreter, *, environments: Sequence[Mapping[str, str]], load_timeout: float
    ) -> None:
        self._interpreter = interpreter
        self._load_timeout = load_timeout
        self._alive: set[_Worker] = set()
        # The worker used last comes first: idle ones that were never needed are never started.
        self._free: asyncio.LifoQueue[_Place] = asyncio.LifoQueue()
        for environment in reversed(environments):
            self._free.put_nowait(_Place(environment))
        self.facts: dict[str, str] = {}

    async def ask(self, request: object, *, timeout: float) -> Output:
        """The answer to a request, or to a job of whatever kind the factory knows.

        `timeout` counts from when a worker takes the request, without loading the engine.

        Raises what the engine raises if it is one of Loupe's errors, EngineTimeoutError, or EngineError (anything else
        that it raises, or its death). EngineUnavailableError: no worker can be started.
        """
        place = await self._free.get()
        try:
            worker = place.worker or await self._new_worker(place)
            try:
                reply = await worker.ask(self._interpreter.message(request), timeout=timeout)
            except _NotTakenError:
                # It died while it was idle (killed for memory, say): no fault of this page.
                self._retire(place)
                worker = await self._new_worker(place)
                reply = await worker.ask(self._interpreter.message(request), timeout=timeout)
        except BaseException:
            # Nobody waits for what this worker does now (it hangs, it died, or the caller gave up).
            self._retire(place)
            raise
        finally:
            self._free.put_nowait(place)
        if reply.error:
            raise _as_error(reply)
        if reply.output is None:
            raise EngineError("the worker process returned no answer on this page")
        return reply.output

    async def open(self) -> None:
        """Start the first worker. Raises what loading the engine raises, EngineUnavailableError if it dies of it."""
        place = self._free.get_nowait()
        try:
            await self._new_worker(place)
        finally:
            self._free.put_nowait(place)

    def close(self) -> None:
        """End every worker, whatever it does; none is left when this returns."""
        for worker in self._alive:
            worker.kill()
        for worker in self._alive:
            worker.close()
        self._alive.clear()

    async def _new_worker(self, place: _Place) -> _Worker:
        worker = place.worker = _Worker(self._interpreter, place.environment)
        self._alive.add(worker)
        try:
            reply = await worker.load(timeout=self._load_timeout)
        except EngineError as error:
            said = worker.last_words()
            self._retire(place)
            message = f"the engine cannot be loaded: {error.message}{f' ({said})' if said else ''}"
            raise EngineUnavailableError(message) from None
        except BaseException:
            self._retire(place)
            raise
        if reply.error:
            self._retire(place)
            raise _as_error(reply, EngineUnavailableError)
        self.facts = reply.facts
        return worker

    def _retire(self, place: _Place) -> None:
        worker, place.worker = place.worker, None
        if worker is not None:
            self._alive.discard(worker)
            worker.close()


@asynccontextmanager
async def worker_pool(
    factory: str,
    settings: Mapping[str, object],
    *,
    workers: int,
    environment: Mapping[str, str] | None = None,
    load_timeout: float = 600.0,
    lazy: bool = False,
    bounded: bool = False,
    folder: Path | None = None,
) -> AsyncIterator[WorkerPool]:
    """A pool whose workers call `factory` (`module:function`) once with `settings` as keyword arguments.

    It must return `Loaded`: the function that reads, and facts about the engine. It runs in the worker alone, so heavy
    imports belong into it. `environment` is all that workers get; by default, everything that is no secret. A `lazy`
    pool starts no worker before the first request. `bounded` workers only read pages, within `loupe.workers.limits`.
    They start in `folder`; by default, in the caller's.
    """
    start = Start(factory=factory, settings=dict(settings), bounded=bounded)
    environments = [for_children() if environment is None else environment] * workers
    async with interpreter_pool(
        OwnInterpreter(start, folder), environments, load_timeout=load_timeout, lazy=lazy
    ) as pool:
        yield pool


@asynccontextmanager
async def interpreter_pool(
    interpreter: Interpreter, environments: Sequence[Mapping[str, str]], *, load_timeout: float, lazy: bool = False
) -> AsyncIterator[WorkerPool]:
    """A pool with one worker for each of the `environments`, which are all that the workers get."""
    pool = WorkerPool(interpreter, environments=environments, load_timeout=load_timeout)
    try:
        if not lazy:
            await pool.open()
        yield pool
    finally:
        pool.close()


class _NotTakenError(EngineError):
    """The process was gone before it took the request."""


class _Worker:
    """The parent's side of one process."""

    def __init__(self, interpreter: Interpreter, environment: Mapping[str, str]) -> None:
        self._interpreter = interpreter
        self._process = Process(environment, command=interpreter.command, folder=interpreter.folder)
        self.kill, self.last_words = self._process.kill, self._process.last_words
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._taken = False

    async def load(self, *, timeout: float) -> Reply:
        """Wait until the engine is loaded."""
        self._streams = await asyncio.open_connection(sock=self._process.socket)
        return await self._exchange(self._interpreter.greeting(), timeout, "while it was loaded", takes=False)

    async def ask(self, message: bytes, *, timeout: float) -> Reply:
        """Hand over a request and wait for its answer."""
        return await self._exchange(message, timeout, "on this page")

    def close(self) -> None:
        """End the process and leave nothing behind."""
        self._process.death()
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._process.close()

    async def _exchange(self, message: bytes, timeout: float, when: str, *, takes: bool = True) -> Reply:
        assert self._streams is not None
        self._streams[1].write(frame(message))
        self._taken = False
        reading = asyncio.ensure_future(self._read_frame(self._streams[0], takes=takes))
        deadline = time.monotonic() + timeout
        try:
            while not reading.done():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise EngineTimeoutError(f"no answer within {timeout:g} s {when}")
                dead = self._process.has_ended()
                await asyncio.wait({reading}, timeout=min(left, _TICK))
                self._process.trim_log()
                if dead and not reading.done():
                    break
            if reading.done():
                return self._interpreter.reply(reading.result())
        except (EOFError, OSError):
            pass
        except msgspec.MsgspecError as error:
            raise EngineError(f"the worker process returned an invalid answer {when}: {error}") from None
        finally:
            reading.cancel()
        kind = EngineError if self._taken else _NotTakenError
        code, how = await self._death()
        if self._interpreter.bounded and self._taken and may_lack_memory(code):
            raise EngineError(f"the page {too_much_or_crash()}")
        raise kind(f"the worker process died ({how}) {when}")

    async def _read_frame(self, reader: asyncio.StreamReader, *, takes: bool) -> bytes:
        """The next answer; an empty frame before it says that the request was taken (`takes`).

        An answer without it is one too many to the request before, and would shift those of all pages that follow.
        """
        (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
        self._taken = True
        if takes:
            if size:
                raise EngineError("the worker process answered before it took the page")
            (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
        if size > _LARGEST_REPLY:
            raise EngineError(f"the answer is larger than {_LARGEST_REPLY // 10**6} MB")
        return await reader.readexactly(size)

    async def _death(self) -> tuple[int, str]:
        """Return its exit code, also in words. What it left behind is ended before its number is free again."""
        end = time.monotonic() + _LAST_MOMENTS
        while not self._process.has_ended():
            if time.monotonic() > end:
                return 0, "it closed its connection"
            await asyncio.sleep(0.01)
        code = self._process.death()
        return code, how_it_ended(code)


def _as_error(reply: Reply, fallback: type[LoupeError] = EngineError) -> LoupeError:
    """The error that was raised in the worker: one of Loupe's as itself, any other as `fallback`."""
    kind = getattr(loupe.errors, reply.kind, None)
    if kind is WriteError:
        return WriteError(reply.error, hint=reply.hint, number=reply.number)
    if kind is TransientEngineError:
        return TransientEngineError(reply.error, hint=reply.hint, rate=reply.busy)
    if isinstance(kind, type) and issubclass(kind, LoupeError):
        return kind(reply.error, hint=reply.hint)
    return fallback(reply.error, hint=reply.hint)


class Interpreter(Protocol):
    """A Python for the workers of a pool. The worker's side of `OwnInterpreter` is `child.py`."""

    @property
    def bounded(self) -> bool:
        """True if a worker has limits so narrow that its death may be for want of memory."""

    @property
    def folder(self) -> Path | None:
        """A worker's working folder; None: the caller's."""

    def command(self, descriptor: int) -> list[str]:
        """The command line of a worker that listens on an inherited socket."""

    def greeting(self) -> bytes:
        """The first message: what is to be loaded."""

    def message(self, request: object) -> bytes:
        """A request as it is sent."""

    def reply(self, message: bytes) -> Reply:
        """Return the reply that came back. Raises msgspec.MsgspecError for anything else."""


@dataclass(frozen=True, slots=True)
class OwnInterpreter:
    """Loupe's own Python, which knows what its classes are."""

    start: Start
    folder: Path | None = None

    @property
    def bounded(self) -> bool:
        """True if a worker keeps the limits of `loupe.workers.limits`."""
        return self.start.bounded

    def command(self, descriptor: int) -> list[str]:
        """With the same search path as this process, and nothing from the working folder."""
        return own_command(descriptor)

    def greeting(self) -> bytes:
        """The function that loads the engine."""
        return msgspec.msgpack.encode(self.start)

    def message(self, request: object) -> bytes:
        """Pickled: it goes to a process of ours."""
        return pickle.dumps(request)

    def reply(self, message: bytes) -> Reply:
        """Never unpickled: it comes from an engine."""
        return msgpack_decoder(Reply).decode(message)


@dataclass(frozen=True, slots=True)
class ThreadedPool:
    """Worker processes for callers that wait in threads of their own, opened and closed by `threaded_pool`."""

    loop: asyncio.AbstractEventLoop
    pool: WorkerPool

    def submit(self, job: object, *, seconds: float) -> Future[Output]:
        """Have a worker do a piece of work; `seconds` count from when it takes it.

        The future raises EngineError where the worker fails, hangs or dies, EngineUnavailableError if none can start.
        """
        return asyncio.run_coroutine_threadsafe(self.pool.ask(job, timeout=seconds), self.loop)


@contextmanager
def threaded_pool(factory: str, workers: int) -> Iterator[ThreadedPool]:
    """Up to `workers` processes that call `factory` (`module:function`) once; what still runs at the end is stopped."""
    loop = asyncio.new_event_loop()
    # The processes end with the thread that started them, so it lives as long as they may.
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = worker_pool(factory, {}, workers=workers, lazy=True)
    try:
        pool = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield ThreadedPool(loop, pool)
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
