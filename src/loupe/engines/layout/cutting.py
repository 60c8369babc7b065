"""Pages cut up by worker processes, alone or as batches: what becomes of a page whose worker dies, and of a detector
that works no more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from loupe.engines.layout.page_regions import CutPage
from loupe.engines.workers.isolation import WorkerPool
from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, PageError
from loupe.typed import msgpack_decoder
from loupe.types import Request


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    request: Request
    ended: asyncio.Future[CutPage | None]


@dataclass(slots=True)
class Cutter:
    """Cuts pages in the workers of a pool, each within `timeout` seconds.

    Up to `batch` pages that wait at the same time are shown to the detector at once, in as many `places` as there are
    workers. Where that fails as a whole, each of them is cut alone, and batches are half as large from then on. After
    `errors_before_check` failures in a row a plain page is cut, to see whether the detector works at all.
    """

    pool: WorkerPool
    timeout: float
    errors_before_check: int
    batch: int = 1
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _failures: int = 0
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def cut(self, request: Request) -> CutPage:
        """The page's regions; none, with the reason, where the detector fails on it.

        Raises PageError where the page cannot be read, EngineError or EngineTimeoutError where the worker dies or
        takes too long, EngineUnavailableError where the detector works no more.
        """
        try:
            page = await self._patiently(request)
        except EngineUnavailableError:
            raise
        except EngineError as error:
            await self._note_failure(error.message)
            raise
        if page.failed:
            await self._note_failure(page.failed)
        else:
            self._failures = 0
        return page

    async def _patiently(self, request: Request) -> CutPage:
        """Once more where the worker died (it may have been another's fault), not where the page took too long."""
        if self.batch > 1 and (page := await self._with_others(request)) is not None:
            if page.unreadable:
                raise PageError(page.unreadable)
            return page
        try:
            return await self._once(request)
        except (EngineTimeoutError, EngineUnavailableError):
            raise
        except EngineError:
            return await self._once(request)

    async def _with_others(self, request: Request) -> CutPage | None:
        """The page, cut with those that wait beside it; None where the batch failed, whosever fault that was.

        While all workers are busy pages gather; the first of them takes the next batch to the worker that is free.
        """
        mine = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            async with self.places:
                if mine in self._waiting:
                    await self._take_batch()
            return await mine.ended
        finally:
            mine.ended.cancel()

    async def _take_batch(self) -> None:
        taken: list[_Waiting] = []
        while self._waiting and len(taken) < self.batch:
            one = self._waiting.popleft()
            taken += [] if one.ended.done() else [one]
        pages: list[CutPage | None] = [None] * len(taken)
        try:
            job = tuple(one.request for one in taken)
            output = await self.pool.ask(job, timeout=self.timeout * len(taken))
            pages = [*msgpack_decoder(list[CutPage]).decode((output.response or {})["pages"])]
        except EngineUnavailableError:
            pass  # Whoever asks alone next is told.
        except EngineError:
            self.batch = max(1, self.batch // 2) if len(taken) > 1 else self.batch
        finally:
            for one, page in zip(taken, pages, strict=True):
                if not one.ended.done():
                    one.ended.set_result(page)

    async def _once(self, request: Request) -> CutPage:
        output = await self.pool.ask(request, timeout=self.timeout)
        return msgpack_decoder(CutPage).decode((output.response or {})["page"])

    async def _note_failure(self, said: str) -> None:
        self._failures += 1
        async with self._looking:
            if self._failures < self.errors_before_check:
                return
            try:
                failed = (await self._once(Request(id="plain page"))).failed
            except EngineUnavailableError:
                raise
            except EngineError as error:
                failed = error.message
            if failed:
                begun = f"the layout detector failed on {self._failures} pages in a row ({said})"
                raise EngineUnavailableError(
                    f"{begun}, and on a plain page: {failed}",
                    hint="fix it (try -o detector_device=cpu), then repeat the same command: finished pages are kept",
                )
            self._failures = 0
