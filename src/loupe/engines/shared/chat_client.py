"""Asking the servers of an engine for answers, and telling what becomes of a request (protocols/engines.md A3, A4).

A page is read and encoded once per request; what is asked again sends the same bytes.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loupe.engines.shared.chat_answers import FirstToken, read_answer
from loupe.engines.shared.chat_bodies import ChatBodies
from loupe.engines.shared.discovery import Patience, join_url, probe, shown
from loupe.engines.shared.endpoint_pool import EndpointPool, NoConnectionError, Place, UnreachableError
from loupe.engines.shared.endpoints import is_listed
from loupe.engines.shared.http_body import read_body
from loupe.engines.shared.http_failures import OutOfMemoryError, failure, fitting_max_tokens
from loupe.engines.shared.posting import post
from loupe.engines.shared.redaction import Redaction
from loupe.errors import EngineTimeoutError, RejectedError, TransientEngineError
from loupe.types import Output, Request

if TYPE_CHECKING:
    import aiohttp

    from loupe.engines.openai import Settings

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
    redaction: Redaction
    session: aiohttp.ClientSession
    bodies: ChatBodies
    concurrency: int
    pool: EndpointPool = field(init=False)
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
            return await self._ask_longer(body, limit, output)
        if not output.text.strip():
            self._keep(request, body)
        return output

    async def _ask_longer(self, body: bytes, limit: int, cut: Output) -> Output:
        """Ask once more with room for a longer answer; where that fails, the answer that was cut off stays."""
        longer = self.settings.retry_truncated or limit
        try:
            output = await self._ask_within_context(self.bodies.with_limit(body, limit, longer), longer)
        except (TransientEngineError, RejectedError, EngineTimeoutError):
            return cut
        billed = (cut.input_tokens or 0, cut.output_tokens or 0)
        response = {**(output.response or {}), "max_tokens_raised_to": longer}
        return replace(output, response=response, discarded_tokens=billed)

    async def healthy(self) -> bool:
        """Whether at least one server lists its models; where all were out, those that do may have requests again."""
        places = self.pool.places
        up = await asyncio.gather(*(self.is_up(place) for place in places))
        if all(place.is_out for place in places):
            for place in itertools.compress(places, up):
                self.pool.bring_back(place)
        return any(up)

    async def is_up(self, place: Place) -> bool:
        """Whether a server answers, and (where it tells) still has the model."""
        endpoint = await probe(self.session, place.base_url, Patience(_HEALTH_SECONDS, _HEALTH_SECONDS))
        if endpoint is None:
            return False
        if place.must_list and endpoint.model_ids and not is_listed(self.model, endpoint.model_ids):
            return False
        return endpoint.models is not None if place.lists_models else endpoint.status < 500

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
        """One HTTP request, with every failure as an error of ours."""
        import aiohttp

        url = join_url(place.base_url, "chat/completions")
        at = f" ({shown(place.base_url)})" if len(self.pool.places) > 1 else ""
        first = FirstToken()
        # The limit of a whole request is ours: a wait for memory does not count.
        connecting = aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout)
        try:
            async with (
                asyncio.timeout(self.settings.timeout) as limit,
                post(self.session, url, body, timeout=connecting) as response,
            ):
                see = first.see if response.content_type == "text/event-stream" else None
                answer = await read_body(response, MOST_ANSWER_BYTES, see=see, limit=limit)
        except aiohttp.ConnectionTimeoutError:
            raise NoConnectionError(f"no connection within {self.settings.connect_timeout:g} s{at}") from None
        except TimeoutError:
            raise EngineTimeoutError(f"no full answer within {self.settings.timeout:g} s{at}") from None
        except (aiohttp.ClientError, OSError) as error:
            said = self.redaction.text(f"{type(error).__name__}: {error}{at}")
            if isinstance(error, aiohttp.ClientConnectorError):
                raise NoConnectionError(said) from None
            broken = isinstance(error, aiohttp.ClientConnectionError)
            raise (UnreachableError if broken else TransientEngineError)(said) from None
        with self.redaction.errors():
            output = self._understand(response, self.redaction.data(answer))
        return replace(output, first_token=first.seconds, endpoint=shown(place.base_url))

    def _understand(self, response: aiohttp.ClientResponse, answer: bytes) -> Output:
        """The output in an answer, or the error that it stands for."""
        headers = {name: self.redaction.text(value) for name, value in response.headers.items()}
        if response.status == 200:
            return self.redaction.output(read_answer(answer, headers.get("Content-Type", "")))
        raise failure(
            response.status, answer, response.headers.get("Retry-After"), location=headers.get("Location", "")
        )
