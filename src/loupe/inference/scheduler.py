"""Asking an engine for many samples: concurrency, retries, back-off, health checks, outcome classes.

Rules: protocols/engines.md A3 and A4. Every sample ends with exactly one prediction; nothing is dropped.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from loupe.engines.shared.answer_memory import AnswerMemory, give_up_room
from loupe.engines.shared.http_failures import check_wait
from loupe.errors import (
    AccountError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    RejectedError,
    TransientEngineError,
    no_room,
)
from loupe.inference.budget import Budget
from loupe.inference.concurrency import MOST, AdaptivePlaces, Attempt, Places
from loupe.inference.divided_pages import DividedPages
from loupe.inference.progress import Progress
from loupe.inference.records import Attempts
from loupe.types import Engine, Output, Prediction, Request

#: How often a sample that is to be retried at all may be told to come back.
RATE_WAITS = 30
#: Seconds between two looks at whether a pause still makes sense, and of pauses that the person is told of.
_LOOK, _WORTH_SAYING = 0.2, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How patient to be. Times in seconds; `max_rate_waits` bounds how often one sample may be told to come back.

    A server that asks for a longer pause than `LONGEST_WAIT` ends the run.

    `concurrency` is the number of requests in flight, or "auto": as many as make the server faster.
    """

    concurrency: int | Literal["auto"] = 1
    retries: int = 2
    backoff: float = 0.5
    backoff_cap: float = 8.0
    max_rate_waits: int = RATE_WAITS
    errors_before_check: int = 3
    health_poll: float = 5.0
    health_limit: float = 120.0
    max_timeouts: int = 50


class TimeoutsExceededError(EngineError):
    """Too many time-outs in one benchmark: it is given up, its answers so far are kept and marked partial."""


@dataclass(slots=True)
class Scheduler:
    """Sends requests to one engine and hands every ended attempt to `keep`, which must store it before it returns."""

    engine: Engine
    policy: Policy
    progress: Progress
    keep: Callable[[Prediction], Awaitable[None]]
    budget: Budget | None = None
    _errors_in_a_row: int = 0
    _timeouts: int = 0
    _refused: AccountError | None = None
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _places: Places = field(init=False)
    _memory: AnswerMemory = field(default_factory=AnswerMemory)
    _jitter: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        chosen = self.policy.concurrency
        self._places = AdaptivePlaces() if chosen == "auto" else Places(chosen)
        if chosen == "auto":
            self.progress.limit = lambda: self._places.limit
        if self.engine.status is not None:
            self.progress.status = self.engine.status
        if self.budget is not None:
            self.progress.spent = self.budget.status

    async def ask_all(self, requests: Iterator[Request]) -> None:
        """Ask for every request; returns when all have ended, or after `progress.request_stop()`.

        Raises EngineUnavailableError or TimeoutsExceededError when going on is pointless, BudgetSpentError when the
        money is spent. Ended samples are kept.
        """
        self._open.set()
        failure: BaseException | None = None
        workers = MOST if self.policy.concurrency == "auto" else self.policy.concurrency
        pages: DividedPages | None = None
        if self.engine.divide is None:
            work = [self._work(requests) for _ in range(workers)]
        else:
            pages = DividedPages(
                self.engine, self._places, self.progress, self._finish_part, self._keep, self._check_timeouts
            )
            work = pages.tasks(partial(self._next, requests), workers)
        tasks = [asyncio.create_task(each) for each in work]
        for task in tasks:
            self.progress.watch(task)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            failure = next((error for task in done if not task.cancelled() and (error := task.exception())), None)
            if isinstance(failure, AccountError):
                # Nothing new is asked; answers that were begun, and are charged, are kept.
                self._refused = failure
                if pages is not None:
                    pages.take_no_more()
                await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if pages is not None:
                why = failure.message if isinstance(failure, LoupeError) else "the run was stopped"
                await pages.close_begun(why, self.keep)
        if failure is not None:
            raise failure
        if self.budget is not None and self.budget.is_spent and not self.progress.stopping:
            raise self.budget.refusal()

    async def _work(self, requests: Iterator[Request]) -> None:
        while not (self.progress.stopping or self._refused):
            async with self._places.place():
                await self._open.wait()
                request = await self._next(requests)
                if request is None:
                    return
                self.progress.in_flight += 1
                try:
                    with self._memory.hold():
                        prediction = await self._finish(request)
                        await self._keep(prediction)
                    self.progress.count(prediction)
                    # A worker that waits for its next page holds no large answer.
                    del prediction
                finally:
                    self.progress.in_flight -= 1
            self._check_timeouts()

    async def _next(self, requests: Iterator[Request]) -> Request | None:
        """The next page to ask for; None when there is none, none is wanted, or none can be paid for any more."""
        request = None if self.progress.stopping or self._refused else next(requests, None)
        if request is not None and self.budget is not None:
            if not await self.budget.admits(lambda: self.progress.stopping or self._refused is not None):
                return None
            self.budget.begin()
        return request

    async def _keep(self, prediction: Prediction) -> None:
        await self.keep(prediction)
        # A page is one time-out, however many of its parts are late: a dense one must not end the run.
        late = prediction.uncounted[1] if prediction.uncounted else 0
        self._timeouts += prediction.outcome == "timeout" or late > 0
        if self.budget is not None:
            self.budget.settle(prediction)

    def _check_timeouts(self) -> None:
        if self._timeouts >= self.policy.max_timeouts:
            what = "requests" if self.engine.divide is None else "pages"
            raise TimeoutsExceededError(f"{self._timeouts} {what} timed out; gave up this benchmark")

    async def _finish_part(self, request: Request) -> Prediction:
        with self._memory.hold():
            return await self._finish(request)

    async def _finish(self, request: Request) -> Prediction:
        """Try one request until it has ended, one way or another."""
        attempts, tries, waits, asked_again = Attempts(request), 0, 0, False
        while True:
            await self._open.wait()
            if self._refused is not None:
                raise self._refused
            attempts.begin()
            try:
                output = await self._ask(request)
            except EngineUnavailableError:
                raise
            except TransientEngineError as error:
                if error.rate and waits < self.policy.max_rate_waits:
                    waits += 1
                    if await self._pause(error, waits):
                        continue
                await self._note_error()
                if not error.rate and tries < self.policy.retries:
                    tries += 1
                    if await self._pause(error, tries):
                        continue
                return attempts.failed(error)
            except (EngineTimeoutError, RejectedError) as error:
                return attempts.failed(error)
            except Exception as error:  # noqa: BLE001 - the border: one sample must not end the run; recorded and counted
                if (full := no_room(error)) is not None:
                    raise full from None
                await self._note_error()
                known = error if isinstance(error, LoupeError) else EngineError(f"{type(error).__name__}: {error}")
                return attempts.failed(known)
            self._errors_in_a_row = 0
            prediction = await attempts.answered(output)
            # A server may hiccup with an empty answer; a local engine is deterministic, and a blank page stays blank.
            if prediction.outcome == "empty" and self.engine.healthy is not None and not asked_again:
                asked_again = True
                attempts.discard(output)
                self.progress.retries += 1
                continue
            return prediction

    async def _ask(self, request: Request) -> Output:
        """One attempt; how it ended may change how many are made at once."""
        outcome: Attempt = "failed"
        try:
            output = await self.engine.predict(request)
            outcome = "answered"
        except TransientEngineError as error:
            outcome = "refused" if error.rate else "failed"
            raise
        except EngineTimeoutError:
            outcome = "timeout"
            raise
        finally:
            if outcome != "answered":
                give_up_room()
            self._places.note(outcome)
        return output

    async def _pause(self, error: TransientEngineError, tries: int) -> bool:
        """Wait before the next attempt; False, at once, where none is wanted any more.

        Raises AccountError where the server asks for a longer pause than anybody waits.
        """
        check_wait(error)
        wait, note = error.retry_after, ""
        if wait is None:
            wait = min(self.policy.backoff * 2 ** (tries - 1), self.policy.backoff_cap) * self._jitter.uniform(0.8, 1.2)
        elif wait >= _WORTH_SAYING:
            note = self.progress.note = f"the server asks to wait {wait:.0f} s"
        end = time.monotonic() + wait
        try:
            while not self.progress.stopping and self._refused is None:
                left = end - time.monotonic()
                if left <= 0:
                    self.progress.retries += 1
                    return True
                await asyncio.sleep(min(left, _LOOK))
        finally:
            self._take_back(note)
        return False

    def _take_back(self, note: str) -> None:
        """Something is over; what others have said since stays."""
        if self.progress.note == note:
            self.progress.note = ""

    async def _note_error(self) -> None:
        """Three errors in a row, from whichever samples: stop sending and see whether the engine still lives."""
        self._errors_in_a_row += 1
        if self.engine.healthy is None or self._errors_in_a_row < self.policy.errors_before_check:
            return
        if self._refused is not None:
            # Nothing is asked any more: whether the server still lives does not matter.
            return
        if not self._open.is_set():
            await self._open.wait()
            return
        self._open.clear()
        try:
            await self._wait_until_healthy(self.engine.healthy)
            self._errors_in_a_row = 0
        finally:
            self._open.set()

    async def _wait_until_healthy(self, healthy: Callable[[], Awaitable[bool]]) -> None:
        end = time.monotonic() + self.policy.health_limit
        note = self.progress.note = f"{self._errors_in_a_row} errors in a row: checking the server"
        try:
            while not await healthy():
                if time.monotonic() >= end or self.progress.stopping:
                    raise EngineUnavailableError(
                        f"the server has not answered its health check for {self.policy.health_limit:.0f} s",
                        hint="start it again, then repeat the same command: finished samples are kept",
                    )
                left = max(end - time.monotonic(), 0.0)
                note = self.progress.note = f"the server is down: waiting, giving up in {left:.0f} s"
                await asyncio.sleep(self.policy.health_poll)
        finally:
            self._take_back(note)
