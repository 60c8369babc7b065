"""Pages that are read in parts: divided ahead, their parts asked together with those of other pages, then joined.

Three stages with bounded queues (docs/engines/layout.md): up to `dividers` pages are divided at once, and only while
few parts wait; parts are asked in the order of their pages, as many as there are places; the last part ends a page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from loupe.errors import EngineError, EngineUnavailableError, LoupeError, in_words, no_room
from loupe.inference.attempts import Attempts
from loupe.inference.progress import Progress
from loupe.types import Division, Engine, Joined, Prediction, Request, RequestPlaces

#: Pages that are open at once: being divided, waiting with their parts, or being read.
MOST_PAGES = 100
#: Pages are divided while fewer parts wait than this for each place.
_AHEAD = 2


@dataclass(slots=True, eq=False)
class _Page:
    """`parts` are let go of as they end: a page may be open for long, and its crops are large."""

    attempts: Attempts
    parts: list[Request | None]
    join: Callable[[Sequence[Prediction]], Joined]
    asked: set[int] = field(default_factory=set)
    ended: dict[int, Prediction] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        return len(self.ended) == len(self.parts)


@dataclass(slots=True)
class DividedPages:
    """Reads every page in parts. `finish` asks for one part until it has ended, `keep` stores a page."""

    engine: Engine
    places: RequestPlaces
    progress: Progress
    finish: Callable[[Request], Awaitable[Prediction]]
    keep: Callable[[Prediction], Awaitable[None]]
    check: Callable[[], None]
    _waiting: deque[tuple[_Page, int]] = field(default_factory=deque)
    _begun: dict[_Page, None] = field(default_factory=dict)
    _ready: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _pages: int = 0
    _dividing: int = 0
    _over: bool = False
    _no_more: bool = False

    def tasks(self, take: Callable[[], Awaitable[Request | None]], workers: int) -> list[Coroutine[None, None, None]]:
        """Return what has to run until all pages have ended: dividing and asking. `take` gives the next page."""
        self._dividing = self.engine.dividers
        dividers = [self._divide_pages(take, workers) for _ in range(self._dividing)]
        return [*dividers, *(self._ask_parts() for _ in range(workers))]

    def take_no_more(self) -> None:
        """Nothing new is asked, not of pages that were begun either; what is in flight is read to its end."""
        self._no_more = True
        self._room.set()

    async def close_begun(self, why: str, keep: Callable[[Prediction], Awaitable[None]]) -> None:
        """On the way out: a record of every page that was begun, with what was read of it, and paid for."""
        for page in list(self._begun):
            prediction = await self._joined(page, [_ended(page, number) for number in range(len(page.parts))])
            if not page.is_read:
                said = f"not read completely ({len(page.ended)} of {len(page.parts)} parts): {why}"
                prediction = msgspec.structs.replace(
                    prediction, outcome="error", text="", error=said[:2000], lost=msgspec.UNSET
                )
            # Why the run ends is what counts; a full disk is said once.
            with suppress(LoupeError):
                await keep(prediction)
            self.progress.count(prediction)
        self._begun.clear()

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
        while not (self.progress.stopping or self._no_more):
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
            division: Division = await self.engine.divide(request)
        except EngineUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - the border: one page must not end the run; recorded and counted
            if (full := no_room(error)) is not None:
                raise full from None
            # Nothing was asked: whatever happened cost no tokens.
            await self._close(msgspec.structs.replace(_failed(attempts, error), uncounted=(0, 0)))
            self.check()
            return
        page = _Page(attempts, list(division.parts), division.join)
        if not page.parts:
            await self._close(await self._joined(page, []))
        for number in range(len(page.parts)):
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
                if self._no_more or (self.progress.stopping and page not in self._begun):
                    continue
                self._begun[page] = None
                await self._ask(page, number)
            if page.is_read:
                prediction = await self._joined(page, [page.ended[each] for each in range(len(page.parts))])
                # What is being stored is not stored again on the way out.
                self._begun.pop(page, None)
                await self._close(prediction)
                self.check()

    async def _ask(self, page: _Page, number: int) -> None:
        part = page.parts[number]
        assert part is not None
        page.asked.add(number)
        self.progress.in_flight += 1
        try:
            page.ended[number] = await self.finish(part)
        except EngineUnavailableError:
            page.asked.discard(number)
            raise
        finally:
            self.progress.in_flight -= 1
            page.parts[number] = None

    async def _joined(self, page: _Page, ended: list[Prediction]) -> Prediction:
        """One record of all that was read of a page."""
        try:
            return await page.attempts.joined(await asyncio.to_thread(page.join, ended))
        except Exception as error:  # noqa: BLE001 - the border, as above
            return _failed(page.attempts, error)

    async def _close(self, prediction: Prediction) -> None:
        await self.keep(prediction)
        self.progress.count(prediction)
        self._pages -= 1
        self._room.set()


def _ended(page: _Page, number: int) -> Prediction:
    """Return how a part ended; one that was in flight may have been charged, one that was not asked was not."""
    if number in page.ended:
        return page.ended[number]
    if number in page.asked:
        return Prediction(outcome="timeout", error="cancelled while in progress")
    return Prediction(outcome="missing", error="not asked")


def _failed(attempts: Attempts, error: Exception) -> Prediction:
    known = error if isinstance(error, LoupeError) else EngineError(in_words(error))
    return attempts.failed(known)
