"""Decide how many requests are in flight: a fixed number, or as many as the server turns into throughput.

The automatic limit starts low and doubles while that makes the server faster; then it looks closer, in steps of a
quarter, for the smallest number that is as fast. A refusal for too many requests (429) or a timeout takes places away
at once. What it measures is the time between ended answers with all places taken, so slow pages need no special care.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

#: Requests in flight at first, and at most.
FIRST: Final = 4
MOST: Final = 256
#: By what share more places must pay to be kept, and how much may be lost for having fewer.
_GAIN: Final = 0.08
_LOSS: Final = 0.04
#: Shares of the places that are left after a timeout and after a 429.
_AFTER_TIMEOUT: Final = 0.5
_AFTER_REFUSAL: Final = 0.7
#: Answers that make a measurement: so many per place, and at least so many.
_ROUNDS: Final = 2
_FEWEST: Final = 16
#: Measurements after which a settled limit is tried again, and for which a refused number is not.
_SETTLED: Final = 12
#: A settled limit is given up when throughput falls by more than this.
_COLLAPSE: Final = 0.3

#: How one attempt ended.
Attempt = Literal["answered", "refused", "timeout", "failed"]


class Places:
    """A number of places for requests; `limit` may change while they are taken, up to `most` (default: never)."""

    def __init__(self, limit: int, *, most: int | None = None) -> None:
        self.limit = limit
        self.most = limit if most is None else most
        self.taken = 0
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        while self.taken >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._wake()

    def note(self, outcome: Attempt) -> None:
        """An attempt has ended so; a fixed number of places does not care."""

    def resize(self, limit: int) -> None:
        """There are so many places from now on; who holds one keeps it."""
        self.limit = min(limit, self.most)
        self._wake()

    def _wake(self) -> None:
        """Give free places to those who wait longest."""
        free = self.limit - self.taken
        while free > 0 and self._waiting:
            turn = self._waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                free -= 1


@dataclass(slots=True)
class _Search:
    """The state of the search: throughput in answers per second by limit, and what is tried next."""

    measured: dict[int, float] = field(default_factory=dict)
    doubling: bool = True
    best: int = 0
    settled: int = 0

    def pays(self, limit: int) -> bool:
        """True if a limit is better than the best one so far: more places must bring more, fewer may cost a little."""
        needed = self.measured.get(self.best, 0.0) * (1 + _GAIN if limit > self.best else 1 - _LOSS)
        return self.measured[limit] >= needed


class AdaptivePlaces(Places):
    """Places whose number follows the server. `clock` gives seconds."""

    def __init__(self, *, first: int = FIRST, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(min(first, most), most=most)
        self._first, self._top = first, most
        self._ceiling = most
        self._ceiling_holds = 0
        self._retreated = False
        self._clock = clock
        self._search = _Search()
        self._draining = 0
        self._answers = 0
        self._began = clock()

    def note(self, outcome: Attempt) -> None:
        """Take an ended attempt into account."""
        if outcome in ("refused", "timeout"):
            self._retreat(_AFTER_REFUSAL if outcome == "refused" else _AFTER_TIMEOUT)
        elif self._draining > 0:
            self._draining -= 1
            if self._draining == 0:
                self._began = self._clock()
        elif outcome == "answered":
            self._answers += 1
            if self._answers >= max(_FEWEST, _ROUNDS * self.limit):
                self._measured(self._answers / max(self._clock() - self._began, 1e-9))

    def spread(self, servers: int, *, each: int = MOST) -> None:
        """So many servers share the work from now on, and each of them takes up to `each` requests.

        With more of them the search starts anew from where it is.
        """
        top = min(self.most, max(1, servers) * each)
        if top == self._top:
            return
        more, self._top = top > self._top, top
        self._ceiling, self._ceiling_holds = top, 0
        self._search = _Search(doubling=more, best=0 if more else min(self.limit, top))
        self._go_to(min(max(self.limit, self._first * servers), top))

    def _retreat(self, share: float) -> None:
        """Fewer places now, and no more for a while; what was begun before the last retreat does not count twice."""
        if self._draining > 0 and self._retreated:
            return
        self._ceiling, self._ceiling_holds = max(1, self.limit - 1), _SETTLED
        fewer = max(1, math.floor(self.limit * share))
        self._search = _Search(doubling=False, best=fewer)
        self._go_to(fewer)
        self._retreated = True

    def _measured(self, rate: float) -> None:
        search, limit = self._search, self.limit
        search.measured[limit] = rate
        self._retreated = False
        self._ceiling_holds -= 1
        if self._ceiling_holds == 0:
            self._ceiling, self._ceiling_holds = min(self._top, 2 * self._ceiling), _SETTLED
        if search.settled > 0:
            self._stay(rate)
            return
        faster = search.pays(limit)
        if faster:
            search.best = limit
        if search.doubling and faster and limit < self._ceiling:
            self._go_to(min(limit * 2, self._ceiling))
        else:
            search.doubling = False
            self._go_to(self._closer() or self._settle())

    def _stay(self, rate: float) -> None:
        """One more measurement of a settled limit; look around again after some, or when throughput collapses."""
        search = self._search
        search.settled += 1
        usual = max(search.measured.values())
        if search.settled > _SETTLED or rate < usual * (1 - _COLLAPSE):
            self._search = _Search(measured={self.limit: rate}, doubling=False, best=self.limit)
            self._go_to(self._closer() or self.limit)
        else:
            self._go_to(self.limit)

    def _closer(self) -> int | None:
        """A neighbour of the best limit that was not measured yet; None when all were."""
        best = self._search.best
        near = (min(math.ceil(best * 1.25), self._ceiling), max(1, math.floor(best * 0.8)))
        return next((limit for limit in near if limit not in self._search.measured), None)

    def _settle(self) -> int:
        self._search.settled = 1
        return self._search.best

    def _go_to(self, limit: int) -> None:
        """Change the limit; answers to what was begun before count for nothing."""
        self._draining = self.taken if limit != self.limit else 0
        self.limit, self._answers, self._began = limit, 0, self._clock()
        self._wake()
