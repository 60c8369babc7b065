"""Pages that a benchmark draws (`Benchmark.draw`), a few ahead of the engine, in processes beside it."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from loupe.data.messages import HEAD, frame
from loupe.data.user_folders import cache_folder, why_not_kept
from loupe.errors import PageError, WriteError
from loupe.helpers import for_children
from loupe.python_process import python_command
from loupe.types import Division, Engine, Output, PageSource, PdfPage, Request, Sample

#: Pages that are drawn ahead, for each process: more would only lie about.
_AHEAD: Final = 8
_MOST_PROCESSES: Final = 4


class Drawer:
    """Draws the pages of samples in their order; `benchmark` is its name ("": pages are there, and nothing is done)."""

    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark
        self._processes = min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._orders: asyncio.Queue[tuple[Sample, asyncio.Future[str]]] = asyncio.Queue()
        self._drawn: dict[str, asyncio.Future[str]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Drawer:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def following(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """The same samples, while those behind them are being drawn."""
        if not self._benchmark:
            yield from samples
            return
        waiting: deque[Sample] = deque()
        for sample in samples:
            waiting.append(sample)
            self._order(sample)
            if len(waiting) > _AHEAD * self._processes:
                yield waiting.popleft()
        yield from waiting

    async def drawn(self, samples: Iterable[Sample]) -> AsyncIterator[Sample]:
        """The same samples, each when its pages are there. Raises PageError for one that cannot be drawn."""
        for sample in self.following(samples):
            await self._wait_for(sample.id)
            yield sample

    def before(self, engine: Engine) -> Engine:
        """The same engine, which is asked as soon as a page is drawn. The wait is no time of the engine's."""
        if not self._benchmark:
            return engine

        async def predict(request: Request) -> Output:
            await self._wait_for(request.id)
            began = time.monotonic()
            output = await engine.predict(request)
            return output if output.seconds is not None else replace(output, seconds=time.monotonic() - began)

        async def divide(request: Request) -> Division:
            await self._wait_for(request.id)
            assert engine.divide is not None
            return await engine.divide(request)

        return replace(engine, predict=predict, divide=divide if engine.divide else None)

    def _order(self, sample: Sample) -> None:
        if all(_path(image).is_file() for image in sample.images):
            return
        in_cache = any(_path(image).is_relative_to(cache_folder()) for image in sample.images)
        if not self._tasks and in_cache and (reason := why_not_kept()):
            # Every page would fail for it, one after the other.
            raise WriteError(reason, hint="XDG_CACHE_HOME names the folder of another cache")
        while len(self._tasks) < self._processes:
            self._tasks.append(asyncio.create_task(self._work()))
        self._drawn[sample.id] = asyncio.get_running_loop().create_future()
        self._orders.put_nowait((sample, self._drawn[sample.id]))

    async def _wait_for(self, sample: str) -> None:
        """Return when the pages of a sample are there. Raises PageError or WriteError if they cannot be."""
        drawing = self._drawn.get(sample)
        if drawing is None:
            return
        problem = await asyncio.shield(drawing)
        if problem.startswith("\0"):
            number, message, hint = problem[1:].split("\0")
            raise WriteError(message, hint=hint, number=int(number))
        if problem:
            raise PageError(problem)
        self._drawn.pop(sample, None)

    async def _work(self) -> None:
        process: Process | None = None
        try:
            while True:
                sample, drawing = await self._orders.get()
                for last in (False, True):
                    try:
                        process = process or await self._started()
                        problem = await _asked(process, sample)
                        break
                    except (OSError, asyncio.IncompleteReadError):
                        process = None
                        problem = f"{sample.id}: the process that draws it ended" if last else ""
                if not drawing.done():
                    drawing.set_result(problem)
        finally:
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()

    async def _started(self) -> Process:
        command = python_command("loupe.inference.drawing_child")
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=for_children()
        )
        assert process.stdin is not None
        process.stdin.write(frame(self._benchmark.encode()))
        return process


def _path(image: PageSource) -> Path:
    return image.path if isinstance(image, PdfPage) else Path(str(image))


async def _asked(process: Process, sample: Sample) -> str:
    """Return why a sample could not be drawn, "" if it was. Raises OSError or IncompleteReadError if the child ends."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(frame(pickle.dumps(sample)))
    await process.stdin.drain()
    (size,) = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
    return (await process.stdout.readexactly(size)).decode()
