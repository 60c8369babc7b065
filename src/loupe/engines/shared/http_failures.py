"""What a failing HTTP answer means: which error it becomes, whether trying again helps, and how long to wait.

Source: protocols/engines.md A3 and A4.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from loupe.engines.shared.chat_answers import error_message
from loupe.errors import EngineError, EngineUnavailableError, RejectedError, TransientEngineError

#: Nobody waits longer than this because a server says so.
LONGEST_WAIT = 60.0
#: Words after which a server answers nothing sensible any more (engines.md A3); compared in lower case.
FATAL_MARKERS = (
    "free memory on device",
    "less than desired gpu memory utilization",
    "cuda out of memory",
    "torch.outofmemoryerror",
    "illegal memory access",
    "torch.acceleratorerror",
)
#: An account without money is told to come back later, for ever.
_OUT_OF_QUOTA = ("insufficient_quota", "insufficient balance")


class NotFoundError(RejectedError):
    """404: the server knows no such model, or no such address."""


class OutOfMemoryError(EngineUnavailableError):
    """A server whose GPU cannot go on. Of several servers, the others may."""


def is_fatal(message: str) -> bool:
    """Whether these words say that nothing sensible will be answered any more."""
    lowered = message[:100_000].lower()
    return any(marker in lowered for marker in FATAL_MARKERS)


_CONTEXT = re.compile(r"(?:maximum context length (?:is|of)|context length is only|max_model_len=)\D{0,20}(\d+)", re.I)
_PROMPT = re.compile(
    r"(\d+)\s+(?:in the (?:messages|prompt)|input tokens|prompt tokens)|prompt contains at least (\d+)", re.I
)


def failure(status: int, body: bytes, retry_after: str | None, *, location: str = "") -> EngineError:
    """The error that an HTTP answer other than 200 stands for."""
    said = f"HTTP {status}: {error_message(body)}"
    lowered = body[:100_000].lower()
    if any(marker.encode() in lowered for marker in FATAL_MARKERS):
        return OutOfMemoryError(
            f"the server cannot go on: {said}", hint="start it again with less memory per request or fewer at a time"
        )
    if status in (401, 403):
        return EngineUnavailableError(
            f"the server refuses the key: {said}", hint="--api-key-file FILE, or export OPENAI_API_KEY=KEY"
        )
    if status == 402 or (status == 429 and any(marker.encode() in lowered for marker in _OUT_OF_QUOTA)):
        return EngineUnavailableError(f"the account has no credit left: {said}")
    if 300 <= status < 400:
        return EngineUnavailableError(
            f"the server sends requests elsewhere: {said}", hint=f"--base-url for {location or 'the new address'}"
        )
    wait = parse_retry_after(retry_after)
    if status == 429 or (status == 503 and wait is not None):
        return TransientEngineError(said, retry_after=wait, rate=True)
    if status >= 500 or status in (408, 425):
        return TransientEngineError(said, retry_after=wait)
    return NotFoundError(said) if status == 404 else RejectedError(said)


def parse_retry_after(value: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds to wait, 0..60, from a number of seconds or an HTTP date; None if there is nothing to read."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WAIT) if seconds == seconds else None


def fitting_max_tokens(message: str, asked: int) -> int | None:
    """How many tokens may be asked for after a context-length error, None if the message does not say.

    >>> fitting_max_tokens("maximum context length is 100 tokens. However, you requested 130 (80 in the messages)", 50)
    19
    """
    limit, prompt = _CONTEXT.search(message), _PROMPT.search(message)
    if not limit or not prompt:
        return None
    fitting = int(limit[1]) - int(prompt[1] or prompt[2]) - 1
    return fitting if 1 <= fitting < asked else None
