"""Asking the servers of an engine for answers, and telling what becomes of a request.

Protocol: docs/protocols/engines.md#outcomes, #retries.
A page is read and encoded once per request; what is asked again sends the same bytes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from loupe.engines.chat.answers import FirstToken, read_answer
from loupe.engines.chat.bodies import ChatBodies
from loupe.engines.chat.discovery import Patience, join_url, probe, shown
from loupe.engines.chat.endings import ProviderError, begun, checked
from loupe.engines.chat.endpoints import EndpointPool, Place, is_listed
from loupe.engines.chat.exchange import Exchange
from loupe.engines.chat.http_failures import NoConnectionError, OutOfMemoryError, failure, fitting_max_tokens
from loupe.engines.chat.settings import Settings
from loupe.errors import EngineTimeoutError, NoAnswerError, RejectedError, TransientEngineError
from loupe.metrics.repetition import find_loop
from loupe.types import Output, Request

if TYPE_CHECKING:
    import aiohttp

#: Limit of tokens where neither profile nor benchmark has one.
DEFAULT_MAX_TOKENS = 4096
#: Longer answers are no answers.
MOST_ANSWER_BYTES = 64_000_000

_HEALTH_SECONDS = 5.0
#: What says in `Output.response` that fewer tokens were asked for.
_REDUCED = "max_tokens_reduced_to"


@dataclass(slots=True)
class ChatClient:
    """Asks the servers. `_bodies` keeps what was sent for requests that may be asked again."""

    settings: Settings
    model: str
    exchange: Exchange
    bodies: ChatBodies
    pool: EndpointPool
    concurrency: int
    _kept: dict[Request, bytes] = field(default_factory=dict)

    async def predict(self, request: Request) -> Output:
        """Ask for one answer."""
        limit = self.settings.max_tokens or request.max_tokens or DEFAULT_MAX_TOKENS
        body = self._kept.pop(request, None)
        if body is None:
            body = await self.bodies.make(request, limit)
        try:
            output = await self._ask_within_context(body, limit)
        except TransientEngineError:
            self._keep(request, body)
            raise
        more_is_wanted = (self.settings.retry_truncated or 0) > limit and _REDUCED not in (output.response or {})
        if output.finish_reason == "length" and more_is_wanted:
            return begun(await self._ask_longer(body, limit, output))
        if self.settings.retry_temperatures:
            return begun(await self._ask_hotter(body, limit, output))
        if not output.text.strip():
            self._keep(request, body)
        return begun(output)

    async def _ask_longer(self, body: bytes, limit: int, cut: Output) -> Output:
        """Ask once more with room for a longer answer; where that fails, the answer that was cut off stays."""
        longer = self.settings.retry_truncated or limit
        try:
            output = await self._ask_within_context(self.bodies.with_limit(body, limit, longer), longer)
        except (TransientEngineError, RejectedError, NoAnswerError, EngineTimeoutError):
            return cut
        billed = (cut.input_tokens or 0, cut.output_tokens or 0)
        response = {**(output.response or {}), "max_tokens_raised_to": longer}
        return replace(output, response=response, discarded_tokens=billed)

    async def _ask_hotter(self, body: bytes, limit: int, output: Output) -> Output:
        """Ask again at each temperature in turn while the answer is no good; the last answer that came counts.

        What was answered before is paid for, and stands in `discarded_tokens`.
        """
        read = written = 0
        for temperature in self.settings.retry_temperatures:
            if not await asyncio.to_thread(_is_spoiled, output, self.settings.retry_if):
                break
            settings = msgspec.structs.replace(self.settings, temperature=temperature)
            hotter = replace(self, settings=settings, bodies=replace(self.bodies, settings=settings))
            try:
                answer = await hotter._ask_within_context(hotter.bodies.like(body, self.bodies, limit), limit)
            except (TransientEngineError, RejectedError, NoAnswerError, EngineTimeoutError):
                break
            read, written = read + (output.input_tokens or 0), written + (output.output_tokens or 0)
            response = {**(answer.response or {}), "temperature_raised_to": temperature}
            output = replace(answer, response=response, discarded_tokens=(read, written))
        return output

    async def healthy(self) -> bool:
        """True if at least one server lists its models; if all were out, those that do may have requests again."""
        places = self.pool.places
        up = await asyncio.gather(*(self.pool.check(place) for place in places))
        if all(place.is_out for place in places):
            for place in itertools.compress(places, up):
                self.pool.bring_back(place)
        return any(up)

    def _keep(self, request: Request, body: bytes) -> None:
        """Remember a body for the next attempt; the oldest give way."""
        self._kept[request] = body
        while len(self._kept) > self.concurrency:
            del self._kept[next(iter(self._kept))]

    async def _ask_within_context(self, body: bytes, limit: int, reductions: int = 2) -> Output:
        """Ask; where that is more tokens than the server gives, and it says how many it does, ask for these.

        A server may first name its own limit, then what the prompt leaves of it.
        """
        try:
            return await self._ask(body)
        except RejectedError as error:
            fitting = fitting_max_tokens(error.message, limit) if reductions else None
            if fitting is None:
                raise
        fewer = self.bodies.with_limit(body, limit, fitting)
        output = await self._ask_within_context(fewer, fitting, reductions - 1)
        return replace(output, response={_REDUCED: fitting, **(output.response or {})})

    async def _ask(self, body: bytes) -> Output:
        """The answer of the least loaded server. One that is not there or refuses more requests passes it to the next.

        A request that a server has seen and did not answer goes to no other one at once: it may be what breaks them.
        That is left to the scheduler, which counts the attempts.
        """
        tried: list[Place] = []
        error: TransientEngineError | None = None
        while (place := self.pool.choose(tried)) is not None:
            tried.append(place)
            try:
                with self.pool.asking(place):
                    return await self._ask_at(place, body)
            except OutOfMemoryError as reason:
                if self.pool.all_gave_up:
                    raise
                raise TransientEngineError(reason.message) from None
            except TransientEngineError as reason:
                if not (reason.rate or isinstance(reason, NoConnectionError)):
                    raise
                error = error if error is not None and error.rate else reason
        assert error is not None
        raise error

    async def _ask_at(self, place: Place, body: bytes) -> Output:
        """One HTTP request to one server."""
        url = join_url(place.base_url, "chat/completions")
        at = f" ({shown(place.base_url)})" if len(self.pool.places) > 1 else ""
        first = FirstToken()
        answer = await self.exchange.ask(url, body, at=at, first=first)
        redaction = self.exchange.redaction
        with redaction.errors():
            try:
                output = redaction.output(read_answer(redaction.data(answer.body), answer.content_type))
            except ProviderError as error:
                if not error.status:
                    raise
                raise failure(error.status, error.body, None, key_hint=self.exchange.key_hint) from None
            output = replace(output, first_token=first.seconds, endpoint=shown(place.base_url))
            return checked(output, self.settings.answer_from)


async def is_up(session: aiohttp.ClientSession, model: str, place: Place) -> bool:
    """True if a server answers and, as far as it tells, still has the model."""
    endpoint = await probe(session, place.base_url, Patience(_HEALTH_SECONDS, _HEALTH_SECONDS))
    if endpoint is None:
        return False
    if place.must_list and endpoint.model_ids and not is_listed(model, endpoint.model_ids):
        return False
    return endpoint.models is not None if place.lists_models else endpoint.status < 500


def _is_spoiled(output: Output, reasons: Sequence[str]) -> bool:
    """True if an answer was cut off or is a loop, as far as these are reasons to ask again; none named: both are."""
    reasons = reasons or ("truncated", "repeated")
    if "truncated" in reasons and output.finish_reason == "length":
        return True
    return "repeated" in reasons and find_loop(output.text) is not None
