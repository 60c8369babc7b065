"""Decide how often and how long a download waits for a busy server: bounded attempts, growing pauses, Retry-After
obeyed.

Source: docs/data.md; Retry-After, which model servers send too, as RFC 9110, section 10.2.3 (seconds or a date).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Answers that may pass.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 509, 520, 521, 522, 523, 524})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """`attempts` count from the last progress; pauses double from `first` to `longest` seconds.

    A hub that does not answer at all is asked `unreached` times: that is no network more often than a busy server.
    A Retry-After longer than `most` seconds ends the attempt: whoever asks for an hour wants to be asked tomorrow.
    """

    attempts: int = 8
    unreached: int = 4
    first: float = 1.0
    longest: float = 60.0
    most: float = 600.0
    connect: float = 30.0
    silence: float = 60.0

    def pause(self, attempt: int, retry_after: float | None) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1); None: give up."""
        if attempt >= self.attempts or (retry_after is not None and retry_after > self.most):
            return None
        grown: float = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(grown, retry_after) if retry_after is not None else grown


def retry_after_seconds(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return what a Retry-After header asks for, in seconds from now; None if it says nothing that can be read.

    A date that has passed means 0; a number below 0, or without an end, says nothing.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0)
    return seconds if 0 <= seconds < math.inf else None
