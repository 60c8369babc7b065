"""Several servers of one model: a request goes to the least loaded one, a dead one is out until it answers again.

Out is who cannot be reached, says that it cannot go on, or fails several times in a row: a broken server fails fast, is
therefore always the least loaded one, and would draw all requests to itself. After a pause that doubles each time it is
asked for its models, not for a page. A refusal for too many requests only pauses a server for as long as it says, and
while one pauses, the dead ones beside it are not asked in its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from loupe.engines.chat.http_failures import OutOfMemoryError, UnreachableError
from loupe.errors import EngineError, EngineTimeoutError, NoAnswerError, RejectedError, TransientEngineError

#: Failures in a row that take a server out although it can be reached.
FAILURES: Final = 3
#: Seconds until a server that is out is asked again: the first time, and at most.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: Seconds without requests for a server that refuses more of them and does not say until when.
_REFUSED_PAUSE: Final = 1.0


@dataclass(slots=True, eq=False)
class Place:
    """One server: how many requests it has, how many it ever had, and whether it is out.

    `lists_models`: it did so at the start, so that one which does not any more is not up. `must_list`: one that lists
    models, and ours is not among them, is another one. `out_until` is when one
    that is out is asked for its models again; `refuses_until` is when it takes requests again by its own word.
    """

    base_url: str
    lists_models: bool = True
    must_list: bool = False
    load: int = 0
    asked: int = 0
    is_out: bool = False
    out_until: float = 0.0
    refuses_until: float = 0.0
    refusal: str = ""
    failures: int = 0
    times_out: int = 0
    gave_up: bool = False


@dataclass(slots=True)
class EndpointPool:
    """The servers of an engine. `check` says whether one that was out may have requests again."""

    places: Sequence[Place]
    check: Callable[[Place], Awaitable[bool]]
    clock: Callable[[], float] = time.monotonic
    _checks: dict[Place, asyncio.Task[None]] = field(default_factory=dict)

    def choose(self, tried: Collection[Place] = ()) -> Place | None:
        """The least loaded server that was not tried yet. None where no other may be asked.

        The first choice is never None: with all of them out, it is the one whose pause ends first. Raises
        TransientEngineError (rate) where one of several servers only wants to be left alone for some time.
        """
        now = self.clock()
        several = len(self.places) > 1
        for place in self.places if several else ():
            if place.is_out and place.out_until <= now and place not in self._checks:
                self._checks[place] = asyncio.create_task(self._look_again(place))
        up = [each for each in self.places if not each.is_out]
        ready = [each for each in up if each.refuses_until <= now and each not in tried]
        if ready:
            return min(ready, key=lambda place: (place.load, place.asked))
        if several and (pausing := [each for each in up if each.refuses_until > now]):
            first = min(pausing, key=lambda place: place.refuses_until)
            raise TransientEngineError(first.refusal, retry_after=first.refuses_until - now, rate=True)
        return None if tried else min(self.places, key=lambda place: place.out_until)

    @contextmanager
    def asking(self, place: Place) -> Iterator[None]:
        """Count a request to this server, and learn from how it ends."""
        place.load += 1
        place.asked += 1
        try:
            yield
        except (RejectedError, NoAnswerError):
            self.bring_back(place)
            raise
        except EngineError as error:
            self._failed(place, error)
            raise
        else:
            self.bring_back(place)
        finally:
            place.load -= 1

    def bring_back(self, place: Place) -> None:
        """This server answers. A refusal of more requests stands: the answer may be an older one."""
        place.is_out = place.gave_up = False
        place.failures = place.times_out = 0
        place.out_until = 0.0

    def status(self) -> str:
        """How many servers are out, in words; nothing while all are in."""
        out = sum(place.is_out for place in self.places)
        return f"{out} of {len(self.places)} servers out" if out and len(self.places) > 1 else ""

    def take_out(self, place: Place) -> None:
        """No requests for this server until it was asked again; each time it is out longer."""
        if place.is_out and place.out_until > self.clock():
            return  # Requests that were in flight when it died tell nothing new.
        place.is_out, place.failures = True, 0
        place.out_until = self.clock() + min(FIRST_PAUSE * 2**place.times_out, LONGEST_PAUSE)
        place.times_out += 1

    @property
    def all_gave_up(self) -> bool:
        """Whether every server is out of memory."""
        return all(place.gave_up for place in self.places)

    async def close(self) -> None:
        """End the looking at servers that are out."""
        checks = list(self._checks.values())
        for task in checks:
            task.cancel()
        await asyncio.gather(*checks, return_exceptions=True)

    def _failed(self, place: Place, error: EngineError) -> None:
        if isinstance(error, OutOfMemoryError | UnreachableError):
            place.gave_up = isinstance(error, OutOfMemoryError)
            self.take_out(place)
        elif isinstance(error, TransientEngineError) and error.rate:
            pause = _REFUSED_PAUSE if error.retry_after is None else error.retry_after
            place.refuses_until, place.refusal = max(place.refuses_until, self.clock() + pause), error.message
        elif isinstance(error, TransientEngineError | EngineTimeoutError):
            place.failures += 1
            if place.failures >= FAILURES:
                self.take_out(place)

    async def _look_again(self, place: Place) -> None:
        """Ask a server that is out whether it is there. The next failure takes it out again, for longer."""
        try:
            if await self.check(place):
                place.is_out = place.gave_up = False
                place.failures = FAILURES - 1
            else:
                self.take_out(place)
        finally:
            del self._checks[place]
