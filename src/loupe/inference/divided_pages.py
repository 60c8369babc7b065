"""Pages that are read in parts: divided ahead, their parts asked together with those of other pages, then joined.

Three stages with bounded queues (docs/engines/layout.md): up to `dividers` pages are divided at once, and only while
few parts wait; parts are asked in the order of their pages, as many as there are places; the last part ends a page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, LoupeError, RejectedError
from loupe.inference.concurrency import Places
from loupe.inference.progress import Progress
from loupe.inference.records import Attempts
from loupe.types import Division, Engine, Prediction, Request

#: Pages that are open at once: being divided, waiting with their parts, or being read.
MOST_PAGES = 100
#: Pages are divided while fewer parts wait than this for each place.
_AHEAD = 2


@dataclass(slots=True, eq=False)
class _Page:
    attempts: Attempts
    division: Division
    ended: dict[int, Prediction] = field(default_factory=dict)
    begun: bool = False


@dataclass(slots=True)
class DividedPages:
    """Reads every page in parts. `finish` asks for one part until it has ended, `keep` stores a page."""

    engine: Engine
    places: Places
    progress: Progress
    finish: Callable[[Request], Awaitable[Prediction]]
    keep: Callable[[Prediction], Awaitable[None]]
    check: Callable[[], None]
    _waiting: deque[tuple[_Page, int]] = field(default_factory=deque)
    _ready: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _pages: int = 0
    _dividing: int = 0
    _over: bool = False

    def tasks(self, take: Callable[[], Awaitable[Request | None]], workers: int) -> list[Coroutine[None, None, None]]:
        """What has to run until all pages have ended: who divides, and who asks. `take` gives the next page."""
        self._dividing = self.engine.dividers
        dividers = [self._divide_pages(take, workers) for _ in range(self._dividing)]
        return [*dividers, *(self._ask_parts() for _ in range(workers))]

    async def _divide_pages(self, take: Callable[[], Awaitable[Request | None]], workers: int) -> None:
        while await self._is_wanted():
            request = await take()
            if request is None:
                break
            self._pages += 1
            await self._divide(request)
        self._dividing -= 1
        if self._dividing == 0:
            self._over = True
            # Nobody waits for parts any more.
            for _ in range(workers):
                self._ready.release()

    async def _is_wanted(self) -> bool:
        """Wait until another page may be divided; False when none is to be begun any more."""
        while not self.progress.stopping:
            if len(self._waiting) < _AHEAD * self.places.limit and self._pages < MOST_PAGES:
                return True
            self._room.clear()
            await self._room.wait()
        return False

    async def _divide(self, request: Request) -> None:
        attempts = Attempts(request)
        attempts.begin()
        assert self.engine.divide is not None
        try:
            division = await self.engine.divide(request)
        except EngineUnavailableError:
            raise
        except LoupeError as error:
            await self._close(_failed(attempts, error))
            return
        except Exception as error:  # noqa: BLE001 - the border: one page must not end the run; recorded and counted
            await self._close(_failed(attempts, EngineError(f"{type(error).__name__}: {error}")))
            return
        page = _Page(attempts, division)
        if not division.parts:
            await self._join(page)
        for number in range(len(division.parts)):
            self._waiting.append((page, number))
            self._ready.release()

    async def _ask_parts(self) -> None:
        while True:
            await self._ready.acquire()
            async with self.places.place():
                if not self._waiting:
                    if self._over:
                        return
                    continue
                page, number = self._waiting.popleft()
                self._room.set()
                # A page that was begun is read to its end; others are asked for again by the next run.
                if self.progress.stopping and not page.begun:
                    continue
                page.begun = True
                self.progress.in_flight += 1
                try:
                    page.ended[number] = await self.finish(page.division.parts[number])
                finally:
                    self.progress.in_flight -= 1
            if len(page.ended) == len(page.division.parts):
                await self._join(page)
            self.check()

    async def _join(self, page: _Page) -> None:
        """One record of all that was read of a page."""
        ended = [page.ended[number] for number in range(len(page.division.parts))]
        try:
            output = await asyncio.to_thread(page.division.join, ended)
            prediction = await page.attempts.answered(output)
        except LoupeError as error:
            prediction = _failed(page.attempts, error)
        except Exception as error:  # noqa: BLE001 - the border, as above
            prediction = _failed(page.attempts, EngineError(f"{type(error).__name__}: {error}"))
        await self._close(prediction)

    async def _close(self, prediction: Prediction) -> None:
        await self.keep(prediction)
        self.progress.count(prediction)
        self._pages -= 1
        self._room.set()


def _failed(attempts: Attempts, error: LoupeError) -> Prediction:
    if isinstance(error, EngineTimeoutError):
        return attempts.failed("timeout", error)
    return attempts.failed("rejected" if isinstance(error, RejectedError) else "error", error)
