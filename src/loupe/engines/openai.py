"""Any OpenAI-compatible chat server: vLLM, SGLang, llama-server, Ollama, LM Studio, mlx, public APIs.

Protocol: protocols/engines.md A1 to A7. A page is read and encoded once per request, off the event loop if it is work;
retries send the same bytes. The scheduler decides about retries; here everything that can fail becomes its error class.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loupe import __version__
from loupe.engines.registry import Profile
from loupe.engines.shared.chat_answers import FirstToken, read_answer
from loupe.engines.shared.chat_bodies import SAMPLING, ChatBodies
from loupe.engines.shared.discovery import (
    AUTO,
    AUTO_FIRST,
    Patience,
    Server,
    choose_model,
    join_url,
    normalize_base_url,
    probe,
    shown,
)
from loupe.engines.shared.endpoint_pool import EndpointPool, Place, UnreachableError
from loupe.engines.shared.endpoints import NO_KEY, api_key, check_served, reach_any, server_facts
from loupe.engines.shared.http_body import read_body
from loupe.engines.shared.http_failures import failure, fitting_max_tokens
from loupe.engines.shared.memory import keep_freed_memory
from loupe.engines.shared.page_images import parse_rule
from loupe.engines.shared.page_reader import page_reader
from loupe.engines.shared.redaction import Redaction, without_secret_arguments, without_secret_keys
from loupe.errors import (
    EngineTimeoutError,
    EngineUnavailableError,
    RejectedError,
    TransientEngineError,
    UsageError,
)
from loupe.runs.info import digest_of
from loupe.types import Engine, Output, Request

if TYPE_CHECKING:
    import aiohttp

#: `-e openai:MODEL`
ARGUMENT = "model"
#: The model reads whole pages itself; a pipeline would cut them up first (`loupe reproduce` tells the two apart).
WAY = "direct"
#: Limit of tokens where neither profile nor benchmark has one.
DEFAULT_MAX_TOKENS = 4096
#: Longer answers are no answers.
MOST_ANSWER_BYTES = 64_000_000

#: Above this, aiohttp wants a stream, so that one write does not hold up the event loop.
_ONE_WRITE = 1_000_000
_HEALTH_SECONDS = 5.0
#: Connections where the number of requests in flight follows the server.
_MOST_AT_ONCE = 256
#: Keys that say which server is to be started, and how (`loupe.servers`).
_STARTED_SERVER = {"serve", "servers", "server_args", "server_port", "server_program", "gpus", "startup_timeout"}


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `openai` profile; see docs/engines/openai.md. The API key itself is never one of them."""

    base_url: str | list[str] = ""
    model: str = ""
    api_key_env: str = ""
    image: str = "fit2048"
    max_tokens: int | None = None
    max_tokens_field: str = ""
    retry_truncated: int | None = None
    temperature: float | Literal["server"] = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: list[str] = msgspec.field(default_factory=list)
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    system: str = ""
    content_order: Literal["image_first", "text_first"] = "image_first"
    connect_timeout: float = 30.0
    serve: str = ""
    servers: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    server_args: list[str] = msgspec.field(default_factory=list)
    server_port: int | Literal["auto"] | None = None
    server_program: str = ""
    gpus: str = ""
    startup_timeout: float = 1200.0
    concurrency: int | Literal["auto"] | None = "auto"
    adapters: list[str] = msgspec.field(default_factory=lambda: ["newlines", "think", "end_tokens", "unfence", "strip"])

    def __post_init__(self) -> None:
        parse_rule(self.image)
        for url in self.base_urls:
            if url not in (AUTO, AUTO_FIRST):
                normalize_base_url(url)
        for key in ("timeout", "connect_timeout", "startup_timeout", "concurrency", "max_tokens", "retry_truncated"):
            value = getattr(self, key)
            if isinstance(value, (int, float)) and value <= 0:
                raise ValueError(f"{key} = {value}: must be above 0")

    @property
    def base_urls(self) -> list[str]:
        """The base URLs as written, without empty ones."""
        written = [self.base_url] if isinstance(self.base_url, str) else self.base_url
        return [url for url in written if url.strip()]

    def signature(self) -> dict[str, str]:
        """Image rule, token limit (if it is not the benchmark's), temperature, and whatever else steers sampling.

        What is too long for a signature (further keys of the body, a system prompt) stands there as a digest.
        """
        fixed = {"img": self.image.replace(" ", "")}
        if self.max_tokens is not None:
            fixed["max"] = str(self.max_tokens)
        if self.retry_truncated is not None:
            fixed["retry_max"] = str(self.retry_truncated)
        fixed["t"] = self.temperature if isinstance(self.temperature, str) else f"{self.temperature:g}"
        fixed |= {key: f"{getattr(self, key):g}" for key in SAMPLING if getattr(self, key) is not None}
        if self.content_order != "image_first":
            fixed["order"] = self.content_order
        long = {"stop": self.stop, "system": self.system, "body": self.extra_body}
        return fixed | {key: digest_of([value])[:8] for key, value in long.items() if value}

    def defining(self) -> dict[str, Any]:
        """Where a server stands, and how long we wait for it, changes no answer; one that we start says what does."""
        skipped = {"base_url", "api_key_env", "connect_timeout", *_STARTED_SERVER}
        return {key: value for key, value in super().defining().items() if key not in skipped}

    def stored(self) -> dict[str, Any]:
        """All settings; the query of an address may hold a key, and so may the arguments of a server."""
        urls = self.base_url
        return {
            **super().stored(),
            "servers": without_secret_keys(self.servers),
            "server_args": without_secret_arguments(self.server_args),
            "base_url": shown(urls) if isinstance(urls, str) else [shown(url) for url in urls],
        }


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Find the server and its model, then yield the engine that asks it.

    Raises EngineUnavailableError if no server answers or it refuses the key; UsageError if it has no such model, or if
    there are several servers or models to choose from.
    """
    import aiohttp

    keep_freed_memory()
    key = api_key(settings.api_key_env, os.environ)
    redaction = Redaction.of(key if key != NO_KEY else "", settings.base_urls)
    concurrency = settings.concurrency if isinstance(settings.concurrency, int) else _MOST_AT_ONCE
    connector = aiohttp.TCPConnector(limit=concurrency, keepalive_timeout=60, ttl_dns_cache=300)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"loupe/{__version__}",
    }
    async with aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=settings.timeout, sock_connect=settings.connect_timeout),
    ) as session:
        with redaction.errors():
            endpoints, server, silent = await reach_any(
                settings.base_urls, session, connect_timeout=settings.connect_timeout
            )
            model = settings.model or choose_model(endpoints[0], server)
            check_served(model, endpoints, server)
        facts = {name: redaction.text(fact) for name, fact in server_facts(model, endpoints, server, silent).items()}
        async with page_reader(timeout=settings.timeout) as reader:
            bodies = ChatBodies(settings, parse_rule(settings.image), model, reader)
            places = [Place(endpoint.base_url, lists_models=endpoint.models is not None) for endpoint in endpoints]
            client = _Client(settings, model, server, redaction, session, bodies, concurrency)
            client.pool = EndpointPool([*places, *map(Place, silent)], client.is_up)
            for place in client.pool.places[len(places) :]:
                client.pool.take_out(place)
            try:
                yield Engine(predict=client.predict, healthy=client.healthy, facts=facts, status=client.pool.status)
            finally:
                await client.pool.close()


@dataclass(slots=True)
class _Client:
    """Asks the servers. `_bodies` keeps what was sent for requests that may be asked again."""

    settings: Settings
    model: str
    server: Server
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
        if output.finish_reason == "length" and (self.settings.retry_truncated or 0) > limit:
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
        try:
            check_served(self.model, [endpoint], self.server)
        except UsageError:
            return False
        return endpoint.models is not None if place.lists_models else endpoint.status < 500

    def _keep(self, request: Request, body: bytes) -> None:
        """Remember a body for the next attempt; the oldest give way."""
        self._kept[request] = body
        while len(self._kept) > self.concurrency:
            del self._kept[next(iter(self._kept))]

    async def _ask_within_context(self, body: bytes, limit: int) -> Output:
        """Ask; if prompt and limit exceed the context and the server gives the numbers, once more with what fits."""
        try:
            return await self._ask(body)
        except RejectedError as error:
            fitting = fitting_max_tokens(error.message, limit)
            if fitting is None:
                raise
        output = await self._ask(self.bodies.with_limit(body, limit, fitting))
        return replace(output, response={**(output.response or {}), "max_tokens_reduced_to": fitting})

    async def _ask(self, body: bytes) -> Output:
        """The answer of the least loaded server. Where one fails or refuses more requests, the next one is asked."""
        tried: list[Place] = []
        error: TransientEngineError | EngineUnavailableError | None = None
        while (place := self.pool.choose(tried)) is not None:
            tried.append(place)
            try:
                with self.pool.asking(place):
                    return replace(await self._ask_at(place, body), endpoint=shown(place.base_url))
            except EngineUnavailableError as reason:
                error = reason if self.pool.all_gave_up else TransientEngineError(reason.message)
            except TransientEngineError as reason:
                error = reason
        assert error is not None
        raise error

    async def _ask_at(self, place: Place, body: bytes) -> Output:
        """One HTTP request, with every failure as an error of ours."""
        import aiohttp

        data = body if len(body) <= _ONE_WRITE else io.BytesIO(body)
        url = join_url(place.base_url, "chat/completions")
        at = f" ({shown(place.base_url)})" if len(self.pool.places) > 1 else ""
        first = FirstToken()
        try:
            async with self.session.post(url, data=data, allow_redirects=False) as response:
                see = first.see if response.content_type == "text/event-stream" else None
                answer = await read_body(response, MOST_ANSWER_BYTES, see=see)
        except aiohttp.ConnectionTimeoutError:
            raise UnreachableError(f"no connection within {self.settings.connect_timeout:g} s{at}") from None
        except TimeoutError:
            raise EngineTimeoutError(f"no full answer within {self.settings.timeout:g} s{at}") from None
        except (aiohttp.ClientError, OSError) as error:
            kind = UnreachableError if isinstance(error, aiohttp.ClientConnectionError) else TransientEngineError
            raise kind(self.redaction.text(f"{type(error).__name__}: {error}{at}")) from None
        with self.redaction.errors():
            return replace(self._understand(response, self.redaction.data(answer)), first_token=first.seconds)

    def _understand(self, response: aiohttp.ClientResponse, answer: bytes) -> Output:
        """The output in an answer, or the error that it stands for."""
        headers = {name: self.redaction.text(value) for name, value in response.headers.items()}
        if response.status == 200:
            return self.redaction.output(read_answer(answer, headers.get("Content-Type", "")))
        raise failure(
            response.status, answer, response.headers.get("Retry-After"), location=headers.get("Location", "")
        )
