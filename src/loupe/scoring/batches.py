"""Choose how many samples go to a scoring process at once. It decides about speed only, never about a score."""

from __future__ import annotations

from dataclasses import dataclass

#: Samples handed over at once, at most. As many as take about `quick` seconds, so that all processes end together.
_LARGEST = 64
#: Where a benchmark prepares samples together, larger batches are cheaper, and some waiting for them pays.
_SECONDS_PREPARED = 10.0
_LARGEST_PREPARED = 200
_FIRST_PREPARED = 16
_GATHERING_SECONDS = 1.0


@dataclass(slots=True)
class BatchSizes:
    """The rule for one benchmark; it learns how long a sample takes. `quick`: seconds of a batch without it."""

    prepared: bool
    quick: float = 0.05
    seconds: float | None = None

    @property
    def largest(self) -> int:
        """No batch is larger."""
        return _LARGEST_PREPARED if self.prepared else _LARGEST

    def learn(self, seconds: float) -> None:
        """A sample took so long, its share of the preparation included."""
        self.seconds = seconds if self.seconds is None else 0.8 * self.seconds + 0.2 * seconds

    def next(self, waiting: int, workers: int) -> int:
        """The size of the next batch."""
        first, budget = (_FIRST_PREPARED, _SECONDS_PREPARED) if self.prepared else (1, self.quick)
        fitting = first if self.seconds is None else int(budget / max(self.seconds, 1e-6))
        share = -(-waiting // workers)
        return max(1, min(fitting, share, self.largest))

    def wait(self, waiting: int, oldest: float) -> float:
        """Seconds to wait for more samples, when so many wait and the oldest has waited for `oldest` seconds."""
        if not self.prepared or waiting >= self.largest:
            return 0.0
        return max(0.0, _GATHERING_SECONDS - oldest)
