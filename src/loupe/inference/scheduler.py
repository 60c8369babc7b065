"""Asking an engine for many samples: concurrency, retries, back-off, health checks, outcome classes.

Rules: docs/protocols/engines.md#outcomes and #retries. Every sample ends with exactly one prediction; nothing is
dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from loupe.engines.chat.endings import begun
from loupe.engines.chat.http_body import AnswerMemory, give_up_room
from loupe.errors import (
    AccountError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    NoAnswerError,
    RejectedError,
    TransientEngineError,
    in_words,
    no_room,
    self_cancelled,
)
from loupe.inference.attempts import Attempts
from loupe.inference.budget import Budget
from loupe.inference.concurrency import AdaptivePlaces, Attempt, Places
from loupe.inference.crew import work_together
from loupe.inference.divided_pages import DividedPages
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy, Retries
from loupe.types import Engine, Output, Prediction, Request, RequestPlaces


class TimeoutsExceededError(EngineError):
    """Too many timeouts in one benchmark: it is given up, its answers so far are kept and marked partial."""


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
    _places: RequestPlaces = field(init=False)
    _memory: AnswerMemory = field(default_factory=AnswerMemory)

    def __post_init__(self) -> None:
        chosen = self.policy.concurrency
        self._places = self.engine.places or (AdaptivePlaces() if chosen == "auto" else Places(chosen))
        if chosen == "auto" or self.engine.places is not None:
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
        workers = self._places.most
        pages: DividedPages | None = None
        if self.engine.divide is None:
            work = [self._work(requests) for _ in range(workers)]
        else:
            pages = DividedPages(
                self.engine, self._places, self.progress, self._finish_part, self._keep, self._check_timeouts
            )
            work = pages.tasks(partial(self._next, requests), workers)
        why = "the run was stopped"

        def refuse(error: AccountError) -> None:
            self._refused = error
            if pages is not None:
                pages.take_no_more()

        try:
            await work_together(work, self.progress, refuse)
        except LoupeError as error:
            why = error.message
            raise
        finally:
            if pages is not None:
                await pages.close_begun(why, self.keep)
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
        # A page is one timeout, however many of its parts are late: a dense one must not end the run.
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
        attempts, asked_again = Attempts(request), False
        retries = Retries(self.policy, self.progress, lambda: self._refused is not None)
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
                if not error.rate:
                    await self._note_error()
                if await retries.again(error):
                    continue
                if error.rate:
                    await self._note_error()
                return attempts.failed(error)
            except NoAnswerError as error:
                self._errors_in_a_row = 0
                return attempts.failed(error)
            except (EngineTimeoutError, RejectedError) as error:
                return attempts.failed(error)
            except Exception as error:  # noqa: BLE001 - the border: one sample must not end the run; recorded and counted
                if (full := no_room(error)) is not None:
                    raise full from None
                await self._note_error()
                known = error if isinstance(error, LoupeError) else EngineError(in_words(error))
                return attempts.failed(known)
            self._errors_in_a_row = 0
            prediction = await attempts.answered(output)
            # A local engine is deterministic: a blank page stays blank.
            may_hiccup = self.policy.asks_empty_again and self.engine.healthy is not None
            # One that has thought has not hiccuped.
            if prediction.outcome == "empty" and not prediction.reasoning and may_hiccup and not asked_again:
                asked_again = True
                attempts.discard(output)
                self.progress.retries += 1
                continue
            return prediction

    async def _ask(self, request: Request) -> Output:
        """One attempt; how it ended may change how many are made at once."""
        outcome: Attempt = "failed"
        try:
            output = begun(await self.engine.predict(request))
            outcome = "answered"
        except NoAnswerError:
            outcome = "answered"
            raise
        except TransientEngineError as error:
            outcome = "refused" if error.rate else "failed"
            raise
        except EngineTimeoutError:
            outcome = "timeout"
            raise
        except asyncio.CancelledError as error:
            raise self_cancelled(error) from None
        finally:
            if outcome != "answered":
                give_up_room()
            self._places.note(outcome)
        return output

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
            self.progress.take_back(note)
