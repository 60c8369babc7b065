"""Decide how patient to be with a server: whether a request is sent again, and how long it waits until then.

Rules: docs/protocols/engines.md#retries. All who ask servers go by them: runs, selections, embeddings.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from loupe.engines.chat.http_failures import check_wait
from loupe.errors import TransientEngineError
from loupe.inference.progress import Progress

#: How often a sample that is to be retried at all may be told to come back.
RATE_WAITS = 30
#: Seconds between two looks at whether a pause still makes sense, and of pauses that the person is told of.
_LOOK, _WORTH_SAYING = 0.2, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The patience with a server. Times in seconds; `max_rate_waits` bounds how often one sample may be told to come
    back.

    A server that asks for a longer pause than `LONGEST_WAIT` ends the run.

    `concurrency` is the number of requests in flight, or "auto": as many as make the server faster. `asks_empty_again`:
    a server may hiccup with an empty answer, and is asked a second time.
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
    asks_empty_again: bool = True


@dataclass(slots=True)
class Retries:
    """The further attempts of one request. `is_over` says whether nothing is asked any more."""

    policy: Policy
    progress: Progress
    is_over: Callable[[], bool] = lambda: False
    _errors: int = 0
    _waits: int = 0

    async def again(self, error: TransientEngineError) -> bool:
        """Wait until the request may be sent again; False, at once, where it may not, or nobody wants it any more.

        Raises AccountError where the server asks for a longer pause than anybody waits.
        """
        if error.rate:
            self._waits += 1
            return self._waits <= self.policy.max_rate_waits and await self._pause(error, self._waits)
        self._errors += 1
        return self._errors <= self.policy.retries and await self._pause(error, self._errors)

    async def _pause(self, error: TransientEngineError, tries: int) -> bool:
        check_wait(error)
        wait, note = error.retry_after, ""
        if wait is None:
            wait = min(self.policy.backoff * 2 ** (tries - 1), self.policy.backoff_cap) * random.uniform(0.8, 1.2)
        elif wait >= _WORTH_SAYING:
            note = self.progress.note = f"the server asks to wait {wait:.0f} s"
        end = time.monotonic() + wait
        try:
            while not (self.progress.stopping or self.is_over()):
                left = end - time.monotonic()
                if left <= 0:
                    self.progress.retries += 1
                    return True
                await asyncio.sleep(min(left, _LOOK))
        finally:
            self.progress.take_back(note)
        return False
