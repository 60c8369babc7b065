"""The record of a sample: what its attempts came to, from the first one to the last."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from loupe.errors import LoupeError, NoAnswerError, outcome_of
from loupe.metrics.repetition import find_loop
from loupe.types import Joined, Outcome, Output, Prediction, Request

#: Characters from which looking for a loop would hold up the other requests.
_LONG_TEXT = 50_000
#: One after the other: each takes memory of its own.
_LOOKING = ThreadPoolExecutor(1, thread_name_prefix="loupe-loops")
#: One look at the calendar for the whole process: a clock that is set while it runs changes no duration.
_EPOCH = time.time() - time.monotonic()


def _moment() -> float:
    """Seconds since 1970, by a clock that only goes forward."""
    return _EPOCH + time.monotonic()


@dataclass(slots=True)
class Attempts:
    """The attempts on one request. `started` is when the last one began; `discarded` are tokens of earlier answers, and
    `charged` is what a service says that it charges for these."""

    request: Request
    count: int = 0
    began: float = field(default_factory=lambda: _moment())
    started: float = 0.0
    discarded: tuple[int, int] = (0, 0)
    charged: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """One more attempt."""
        self.count += 1
        self.started = time.monotonic()

    def discard(self, output: Output) -> None:
        """An answer that another one takes the place of; its tokens were used all the same."""
        self.discarded = _sum(self.discarded, _sum(output.discarded_tokens, _tokens(output)))
        self.charged.update(output.charged or {})

    async def answered(self, output: Output) -> Prediction:
        """The record of an answer."""
        return self._record(output, outcome=await _classify(output), error="")

    async def joined(self, joined: Joined) -> Prediction:
        """The record of a page that was read in parts."""
        prediction = await self.answered(joined.output)
        return msgspec.structs.replace(
            prediction,
            outcome=joined.outcome or prediction.outcome,
            error=joined.error[:2000],
            uncounted=joined.uncounted if any(joined.uncounted) or joined.outcome == "timeout" else msgspec.UNSET,
            lost=joined.lost or msgspec.UNSET,
        )

    def failed(self, error: LoupeError) -> Prediction:
        """The record of a sample without an answer; of a reply that is none, with what it used and said."""
        reply = error.output if isinstance(error, NoAnswerError) else None
        return self._record(reply or Output(text=""), outcome=outcome_of(error), error=error.message[:2000])

    def _record(self, output: Output, *, outcome: Outcome, error: str) -> Prediction:
        seconds = time.monotonic() - self.started
        discarded = _sum(self.discarded, output.discarded_tokens)
        self.charged.update(output.charged or {})
        return Prediction(
            sample=self.request.id,
            text=output.text,
            outcome=outcome,
            error=error,
            finish_reason=output.finish_reason,
            input_tokens=output.input_tokens,
            output_tokens=output.output_tokens,
            seconds=round(seconds if output.seconds is None else output.seconds, 4),
            attempt=self.count,
            reasoning=output.reasoning,
            response=dict(output.response) if output.response else None,
            endpoint=output.endpoint or msgspec.UNSET,
            charged=dict(self.charged) if self.charged else msgspec.UNSET,
            began=round(self.began, 3),
            ended=round(_moment(), 3),
            discarded_tokens=discarded if any(discarded) else msgspec.UNSET,
        )


def _tokens(output: Output) -> tuple[int, int]:
    return output.input_tokens or 0, output.output_tokens or 0


def _sum(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


async def _classify(output: Output) -> Outcome:
    if len(output.text) < _LONG_TEXT:
        loop = find_loop(output.text)
    else:
        loop = await asyncio.get_running_loop().run_in_executor(_LOOKING, find_loop, output.text)
    if loop is not None:
        return "repeated"
    if output.finish_reason == "length":
        return "truncated"
    return "ok" if output.text.strip() else "empty"
