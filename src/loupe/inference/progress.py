"""State of a run right now: plain counters that a display polls, and the two ways to stop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from loupe.types import FAILED, Estimate, Measure, Prediction

#: Seconds over which the live rate is counted.
LIVE_SECONDS = 30.0


@dataclass(slots=True)
class Progress:
    """Counters of one run. `resumed` samples were done before; `done` ended in this session.

    `limit` tells how many requests may be in flight just now where that number follows the server, `status` what the
    engine says of itself, `spent` what was paid so far, as "0.12 of 0.50 USD", `overall` which of several runs this is.
    `remark` is to be said at the end, `news` as soon as they are there.
    """

    engine: str = ""
    benchmark: str = ""
    total: int = 0
    resumed: int = 0
    done: int = 0
    in_flight: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    headline: tuple[Measure, Estimate] | None = None
    note: str = ""
    remark: str = ""
    limit: Callable[[], int] | None = None
    status: Callable[[], str] | None = None
    spent: Callable[[], str] | None = None
    overall: Callable[[], str] | None = None
    started: float = field(default_factory=time.monotonic)
    stopping: bool = False
    hurried: bool = False
    news: deque[str] = field(default_factory=deque)
    #: What was said before, also by runs of the same command.
    said: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _ended: deque[float] = field(default_factory=deque)

    @property
    def seconds(self) -> float:
        """Seconds since the first request."""
        return time.monotonic() - self.started

    @property
    def failed(self) -> int:
        """Samples that ended without an answer in this session."""
        return sum(self.outcomes[outcome] for outcome in FAILED)

    @property
    def pages_per_second(self) -> float:
        """Samples ended per second, over the whole session."""
        return self.done / self.seconds if self.done else 0.0

    @property
    def live_rate(self) -> float | None:
        """Samples ended per second just now; None in the first seconds, when it is no other than the whole rate."""
        now = time.monotonic()
        while self._ended and self._ended[0] < now - LIVE_SECONDS:
            self._ended.popleft()
        return len(self._ended) / LIVE_SECONDS if self.done and self.seconds > LIVE_SECONDS else None

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second, over the whole session; 0 where the engine counts none."""
        return self.output_tokens / self.seconds if self.output_tokens else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds until the end at this pace; None before the first sample ended."""
        left = self.total - self.resumed - self.done
        return left / self.pages_per_second if self.done else None

    def count(self, prediction: Prediction) -> None:
        """Take one ended sample into the counters."""
        self.done += 1
        self._ended.append(time.monotonic())
        self.outcomes[prediction.outcome] += 1
        self.input_tokens += prediction.input_tokens or 0
        self.output_tokens += prediction.output_tokens or 0

    def tell(self, line: str) -> None:
        """Have a line said now, once; "" and what was said before is not."""
        told = f"{self.engine}: {line}"
        if line and told not in self.said:
            self.said.add(told)
            self.news.append(told)

    def take_back(self, note: str) -> None:
        """End what a note said; what others have said since stays."""
        if self.note == note:
            self.note = ""

    def request_stop(self) -> None:
        """Send nothing new; let what is in flight finish and be written."""
        self.stopping = True

    def stop_now(self) -> None:
        """Give up what is in flight, too; nothing that was written is touched."""
        self.stopping = self.hurried = True
        for task in self._tasks:
            task.cancel()

    def watch(self, task: asyncio.Task[None]) -> None:
        """Register a task that `stop_now` cancels."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
