"""Pages that a benchmark draws (`Benchmark.draw`), a few ahead of the engine, in processes beside it."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from loupe.benchmarks.registry import load_benchmark
from loupe.data.user_folders import cache_folder, why_not_kept
from loupe.errors import EngineError, PageError, WriteError, cannot_write, is_refusal
from loupe.helpers import for_children
from loupe.types import Division, Engine, Output, PageSource, PdfPage, Request, Sample
from loupe.workers.child import Loaded, Start
from loupe.workers.pool import OwnInterpreter, WorkerPool

#: Pages that are drawn ahead, for each process: more would only lie about.
_AHEAD: Final = 8
_MOST_PROCESSES: Final = 4


class Drawer:
    """Draws the pages of samples in their order; `benchmark` is its name ("": pages are there, and nothing is done)."""

    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark
        self._processes = min(_MOST_PROCESSES, os.cpu_count() or 1)
        start = Start(factory=f"{__name__}:load", settings={"benchmark": benchmark}, bounded=True, timed=True)
        environments = [for_children()] * self._processes
        self._pool = WorkerPool(OwnInterpreter(start), environments=environments, load_timeout=600)
        self._begun = False
        self._drawn: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Drawer:
        return self

    async def __aexit__(self, *_: object) -> None:
        for drawing in self._drawn.values():
            drawing.cancel()
        await asyncio.gather(*self._drawn.values(), return_exceptions=True)
        self._pool.close()

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
        if not self._begun and in_cache and (reason := why_not_kept()):
            # Every page would fail for it, one after the other.
            raise WriteError(reason, hint="XDG_CACHE_HOME names the folder of another cache")
        self._begun = True
        self._drawn[sample.id] = asyncio.create_task(self._draw(sample))

    async def _draw(self, sample: Sample) -> None:
        try:
            await self._pool.ask(sample, timeout=math.inf)
        except EngineError as error:
            raise PageError(f"{sample.id}: cannot be drawn ({error.message})", hint=error.hint) from None

    async def _wait_for(self, sample: str) -> None:
        """Return when the pages of a sample are there. Raises PageError or WriteError if they cannot be."""
        drawing = self._drawn.get(sample)
        if drawing is not None:
            await asyncio.shield(drawing)
            self._drawn.pop(sample, None)


def _path(image: PageSource) -> Path:
    return image.path if isinstance(image, PdfPage) else Path(str(image))


def load(benchmark: str) -> Loaded:
    """Load what draws pages, in a process of the pool."""
    draw = load_benchmark(benchmark).draw
    assert draw is not None

    def drawn(sample: Sample) -> str:
        try:
            draw(sample)
        except Exception as error:  # noqa: BLE001  a worker's border: it is the error of this page
            if isinstance(error, OSError) and is_refusal(error):
                raise cannot_write(error.filename or "a temporary file", error) from None
            raise PageError(f"{sample.id}: cannot be drawn ({error or type(error).__name__})") from None
        return ""

    return Loaded(read=drawn)
