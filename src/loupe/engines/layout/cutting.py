"""Pages cut up by worker processes: what becomes of a page whose worker dies, and of a detector that works no more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from loupe.engines.layout.page_regions import CutPage
from loupe.engines.shared.isolation import WorkerPool
from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError
from loupe.typed import msgpack_decoder
from loupe.types import Request


@dataclass(slots=True)
class Cutter:
    """Cuts pages in the workers of a pool, each within `timeout` seconds.

    After `errors_before_check` failures in a row a plain page is cut, to see whether the detector works at all.
    """

    pool: WorkerPool
    timeout: float
    errors_before_check: int
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
        try:
            return await self._once(request)
        except (EngineTimeoutError, EngineUnavailableError):
            raise
        except EngineError:
            return await self._once(request)

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
                    hint="mend it (-o detector_device=cpu?), then repeat the same command: finished pages are kept",
                )
            self._failures = 0
