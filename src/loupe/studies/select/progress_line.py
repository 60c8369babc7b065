"""The line that follows one model: how long it has been loading, then how far it is and how long it may still take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProgressLine:
    """`show` gets the line each time it changes; `total` calls are to be made."""

    head: str
    total: int
    show: Callable[[str], None]
    _note: str = "loading"
    _began: float = field(default_factory=time.monotonic)
    _loaded: float = 0.0

    def tell(self, done: int, timeouts: int, errors: int) -> None:
        """A call has ended."""
        now = time.monotonic()
        # The first answer says when the model was there at the latest.
        self._loaded = self._loaded or now
        left = (now - self._loaded) / (done - 1) * (self.total - done) if done > 1 else 0.0
        wrong = [f"{timeouts} time-outs"] * bool(timeouts) + [f"{errors} errors"] * bool(errors)
        time_left = [f"about {clock(left)} left"] * (left >= 1)
        self.show(" · ".join([f"{self.head}: {done}/{self.total}", *wrong, *time_left]))

    def note(self, text: str) -> None:
        """What is going on while nothing is answered."""
        self._note = text
        self._waiting()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Say every second how long the first answer is waited for."""
        ticks = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            ticks.cancel()
            with suppress(asyncio.CancelledError):
                await ticks

    async def _tick(self) -> None:
        while not self._loaded:
            self._waiting()
            await asyncio.sleep(1)

    def _waiting(self) -> None:
        waited = time.monotonic() - self._began
        self.show(f"{self.head}: {self._note}" + (f", {clock(waited)}" if waited >= 1 else ""))


def clock(seconds: float) -> str:
    """`M:SS`, from an hour on `H:MM:SS`.

    >>> clock(61.2), clock(3661)
    ('1:01', '1:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
