"""A page or document through a service: send, wait for the job, get the answer, take the text out of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loupe.data.hub.patience import retry_after_seconds
from loupe.engines.services.calls import Caller, Reply, Sent
from loupe.engines.services.description import Answer, Call, Fetch, Poll, UsagePaths
from loupe.engines.services.paths import look, outline, texts
from loupe.engines.services.placeholders import Find
from loupe.errors import EngineError, EngineTimeoutError, RejectedError, TransientEngineError
from loupe.types import Output, Request

#: Failed questions about a job, one after the other, after which it is given up.
_MOST_FAILED_POLLS = 5
#: What a service answers that has forgotten a job.
_GONE = frozenset({404, 410})
#: Jobs that are remembered for another attempt.
_MOST_JOBS = 1000


class _LostJobError(TransientEngineError):
    """A job is asked about in vain: the page is sent again."""

    def __init__(self) -> None:
        super().__init__("the service no longer has the job that it began")


@dataclass(frozen=True, slots=True)
class Read:
    """What a service read: the text of each page, or one text; and what it says beside it."""

    texts: list[str]
    finish_reason: str
    usage: Mapping[str, Any]
    seconds: float

    def output(self, text: str) -> Output:
        """The answer for one page."""
        tokens = [int(self.usage[key]) if key in self.usage else None for key in ("input_tokens", "output_tokens")]
        charged = {key: self.usage[key] for key in ("pages", "credits") if key in self.usage}
        return Output(
            text=text,
            finish_reason=self.finish_reason,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            seconds=self.seconds,
            response={"usage": charged} if charged else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClient:
    """Asks one service. A job whose end could not be learnt is asked about again, not begun and paid again."""

    caller: Caller
    secrets: Mapping[str, str]
    model: str
    upload: Call | None
    submit: Call
    poll: Poll | None
    fetch: tuple[Fetch, ...]
    answer: Answer
    usage: UsagePaths
    polls_count: bool
    _jobs: dict[Request, dict[str, Reply]] = field(default_factory=dict)

    async def read(self, request: Request, sent: Sent, *, timeout: float) -> Read:
        """What the service reads. Raises EngineTimeoutError if that takes more than `timeout` seconds."""
        replies = self._jobs.pop(request, {})
        try:
            async with asyncio.timeout(timeout):
                return await self._read(request, sent, replies)
        except TimeoutError:
            raise EngineTimeoutError(f"no full answer within {timeout:g} s") from None
        except _LostJobError:
            raise
        except TransientEngineError:
            if self.poll is not None and "submit" in replies and len(self._jobs) < _MOST_JOBS:
                self._jobs[request] = {key: replies[key] for key in ("upload", "submit") if key in replies}
            raise

    async def _read(self, request: Request, sent: Sent, replies: dict[str, Reply]) -> Read:
        def find(name: str) -> Any:
            kind, _, rest = name.partition(":")
            if kind == "page":
                return sent.part(rest)
            if kind == "secret":
                return self.secrets.get(rest, "")
            if kind == "submit_header":
                return replies["submit"].headers.get(rest.lower())
            if kind in ("prompt", "model"):
                return request.prompt if kind == "prompt" else self.model
            return look(rest, replies[kind].data) if kind in replies else None

        began = time.monotonic()
        if "submit" not in replies:
            began = await self._send(sent, find, replies)
        poll = self.poll
        if poll is not None and (not poll.after or replies["submit"].status in poll.after):
            replies["last"] = replies["poll"] = await self._wait(poll, find, replies)
        for fetch in self.fetch:
            if not fetch.when or look(fetch.when, replies["last"].data):
                call = Call(url=fetch.url, method="GET", format=fetch.format)
                reply = await self.caller.call(call, find, let=_GONE)
                if reply.status in _GONE:
                    raise _LostJobError
                replies["last"] = reply
        return self._taken(replies["last"].data, time.monotonic() - began)

    async def _send(self, sent: Sent, find: Find, replies: dict[str, Reply]) -> float:
        """Upload and submit; the time at which the first of them was sent."""
        await self.caller.pace.turn()
        began = time.monotonic()
        if self.upload is not None:
            replies["upload"] = await self.caller.call(self.upload, find, sent, paced=False)
        replies["last"] = replies["submit"] = await self.caller.call(
            self.submit, find, sent, paced=self.upload is not None
        )
        return began

    async def _wait(self, poll: Poll, find: Find, replies: dict[str, Reply]) -> Reply:
        """The answer of a job that is done. Raises RejectedError for one that failed."""
        call = Call(url=poll.url, method="GET", query=poll.query, format=poll.format)
        pause, failed = poll.every, 0
        asked_to_wait = _seconds(replies["submit"].headers.get("retry-after"))
        while True:
            await asyncio.sleep(max(pause, asked_to_wait))
            asked_to_wait = 0.0
            pause = min(pause * poll.backoff, poll.at_most)
            pending = frozenset(poll.pending_codes)
            try:
                reply = await self.caller.call(call, find, let=pending | _GONE, paced=self.polls_count)
                if reply.status in _GONE - pending:
                    raise _LostJobError
            except TransientEngineError as error:
                failed += 1
                if failed >= _MOST_FAILED_POLLS:
                    raise
                asked_to_wait = error.retry_after or 0.0
                continue
            failed = 0
            asked_to_wait = _seconds(reply.headers.get("retry-after"))
            if reply.status in pending:
                continue
            state = look(poll.status, reply.data) if poll.status else None
            if poll.status and state in poll.failed:
                said = " ".join("; ".join(texts(look(poll.error, reply.data) if poll.error else None)).split())
                raise RejectedError(f"the service could not read it ({state}): {said[:1000] or 'no reason given'}")
            if not poll.status or state in poll.done:
                return reply

    def _taken(self, data: Any, seconds: float) -> Read:
        """The text of an answer, and what stands beside it. Raises EngineError where there is none."""
        answer = self.answer
        if answer.lost and (lost := look(answer.lost, data)):
            raise EngineError(f"the service left something out: {str(lost)[:200]}")
        path = answer.pages or answer.text
        value = look(path, data)
        if value is None:
            raise EngineError(f"no text at {path!r} of the service's answer, which is {outline(data)}")
        found = [answer.join.join(texts(page)) for page in value] if answer.pages and isinstance(value, list) else None
        cut = bool(answer.finish) and look(answer.finish, data) in answer.truncated
        usage = {
            key: number
            for key in ("pages", "credits", "input_tokens", "output_tokens")
            if (path := getattr(self.usage, key)) and _is_number(number := look(path, data))
        }
        found = [answer.join.join(texts(value))] if found is None else found
        return Read(found, "length" if cut else "stop", usage, seconds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _seconds(header: str | None) -> float:
    """How long a service asks to be left alone; 0 where it does not say."""
    return min(retry_after_seconds(header) or 0.0, 300.0)
