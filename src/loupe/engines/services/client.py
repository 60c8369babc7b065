"""A page or document through a service: send, wait for the job, get the answer, take the text out of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loupe.data.hub.patience import retry_after_seconds
from loupe.engines.chat.http_failures import check_wait
from loupe.engines.services.calls import Caller, GoneError, Reply, Sent
from loupe.engines.services.paths import joined, look, said_at, text_at
from loupe.engines.services.placeholders import Find
from loupe.engines.services.settings import Call, Poll, Settings
from loupe.engines.shared.foreign_formats import error_reply
from loupe.errors import EngineError, EngineTimeoutError, NoAnswerError, TransientEngineError
from loupe.types import Request

#: Failed questions about a job, one after the other, after which it is given up.
_MOST_FAILED_POLLS = 5
#: Jobs that are remembered for another attempt.
_MOST_JOBS = 1000
#: Seconds that a service may ask to be left alone while it works.
_LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The result of a service: one text, or that of each page; whether it was cut off, and what is charged for it."""

    texts: list[str]
    cut: bool
    usage: Mapping[str, float]
    seconds: float


@dataclass(slots=True)
class _Job:
    """The answers to the requests for one page so far."""

    replies: dict[str, Reply] = field(default_factory=dict)
    began: float = 0.0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClient:
    """Asks one service. A job whose end could not be learnt is asked about again, not begun and paid again."""

    settings: Settings
    caller: Caller
    secrets: Mapping[str, str]
    _jobs: dict[Request, _Job] = field(default_factory=dict)

    async def read(self, request: Request, sent: Sent, *, timeout: float, whole: bool = False) -> Read:
        """Have the service read; `whole`: a document, of which the profile says how it is sent.

        Raises EngineTimeoutError if that takes more than `timeout` seconds, not counting the wait for its turn.
        """
        job = self._jobs.pop(request, None) or _Job()
        if not job.replies:
            await self.caller.pace.turn()
        try:
            async with asyncio.timeout(timeout):
                return await self._read(request, sent, job, whole=whole)
        except TimeoutError:
            state = f"; the job was {job.state!r}" if job.state else ""
            raise EngineTimeoutError(f"no full answer within {timeout:g} s{state}") from None
        except GoneError:
            raise
        except TransientEngineError:
            if self.settings.poll is not None and "submit" in job.replies and len(self._jobs) < _MOST_JOBS:
                self._jobs[request] = job
            raise

    async def _read(self, request: Request, sent: Sent, job: _Job, *, whole: bool) -> Read:
        settings, replies = self.settings, job.replies
        find = self._finder(request, sent, replies)
        if "submit" not in replies:
            await self._send(settings.document if whole and settings.document else settings.submit, sent, find, job)
        last = replies["submit"]
        poll = settings.poll
        if poll is not None and (not poll.after or last.status in poll.after):
            last = replies["poll"] = await self._wait(poll, find, job)
        for fetch in settings.fetch:
            if not fetch.when or look(fetch.when, last.data):
                last = await self.caller.ask(fetch, find)
        return await asyncio.to_thread(self._taken, last.data, time.monotonic() - job.began, whole=whole)

    def _finder(self, request: Request, sent: Sent, replies: Mapping[str, Reply]) -> Find:
        """Return the function that finds the value of a placeholder; None for what the service has not said."""

        def find(name: str) -> Any:
            kind, _, rest = name.partition(":")
            match kind:
                case "page":
                    return getattr(sent, rest)
                case "secret":
                    return self.secrets.get(rest, "")
                case "prompt":
                    return request.prompt
                case "model":
                    return self.settings.model
                case "submit_header":
                    return replies["submit"].headers.get(rest.lower())
            return look(rest, replies[kind].data) if kind in replies else None

        return find

    async def _send(self, submit: Call, sent: Sent, find: Find, job: _Job) -> None:
        """Upload and submit; the time runs from the first of them."""
        job.began = time.monotonic()
        if self.settings.upload is not None:
            job.replies["upload"] = await self.caller.send(self.settings.upload, find, sent)
            await self.caller.pace.turn()
        job.replies["submit"] = await self.caller.send(submit, find, sent)

    async def _wait(self, poll: Poll, find: Find, job: _Job) -> Reply:
        """The answer of a job that is done. Raises EngineError for one that failed."""
        pause, failed = poll.every, 0
        asked_to_wait = _pause_of(job.replies["submit"])
        while True:
            await asyncio.sleep(max(pause, asked_to_wait))
            pause, asked_to_wait = min(pause * poll.backoff, poll.at_most), 0.0
            if self.settings.rate.polls_count:
                await self.caller.pace.turn()
            try:
                reply = await self.caller.ask(poll, find)
            except GoneError:
                raise
            except TransientEngineError as error:
                check_wait(error)
                failed += 1
                if failed >= _MOST_FAILED_POLLS:
                    raise
                asked_to_wait = error.retry_after or 0.0
                continue
            failed, asked_to_wait = 0, _pause_of(reply)
            if reply.status not in poll.pending_codes and _is_done(poll, reply, job):
                return reply

    def _taken(self, data: Any, seconds: float, *, whole: bool) -> Read:
        """The text of an answer, and what stands beside it. Raises EngineError where there is none."""
        answer, usage = self.settings.answer, self.settings.usage
        if lost := look(answer.lost, data):
            raise EngineError(f"the service left something out: {str(lost)[:200]}")
        found = text_at(answer.text, data)
        pages = found if whole and answer.per_page else [found]
        words = look(answer.finish, data)
        paths = {key: getattr(usage, key) for key in ("pages", "credits", "input_tokens", "output_tokens")}
        told = {key: look(path, data) for key, path in paths.items() if path}
        texts = [joined(page, answer.join, answer.text) for page in pages]
        if said := next(filter(None, map(error_reply, texts)), ""):
            raise NoAnswerError(f"the answer is an error: {said}")
        return Read(
            texts=texts,
            cut=any(word in answer.truncated for word in (words if isinstance(words, list) else [words])),
            usage={key: number for key, number in told.items() if _is_number(number)},
            seconds=seconds,
        )


def _is_done(poll: Poll, reply: Reply, job: _Job) -> bool:
    """True if a job has an answer. Raises EngineError for one that failed."""
    if not poll.status:
        return True
    state = look(poll.status, reply.data)
    if not isinstance(state, str):
        raise EngineError(f"no word at {poll.status!r} of what the service says of its job")
    job.state = state[:40]
    if state in poll.failed:
        said = said_at(poll.error, reply.data) or "no reason given"
        raise EngineError(f"the service could not read it ({job.state}): {said}")
    return state in poll.done


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _pause_of(reply: Reply) -> float:
    """Return the seconds that a service asks to be left alone; 0 if it does not say."""
    return min(retry_after_seconds(reply.headers.get("retry-after")) or 0.0, _LONGEST_PAUSE)
