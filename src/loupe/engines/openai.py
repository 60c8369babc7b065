"""Any OpenAI-compatible chat server: vLLM, SGLang, llama-server, Ollama, LM Studio, mlx, public APIs.

Protocol: protocols/engines.md A1 to A7. A page is read and encoded once per request, off the event loop if it is work;
retries send the same bytes. The scheduler decides about retries; here everything that can fail becomes its error class.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec

from loupe import __version__
from loupe.engines.registry import Profile
from loupe.engines.shared.chat_bodies import SAMPLING, ChatBodies
from loupe.engines.shared.chat_client import ChatClient
from loupe.engines.shared.discovery import AUTO, AUTO_FIRST, address, choose_model, normalize_base_url, shown
from loupe.engines.shared.endpoint_pool import EndpointPool
from loupe.engines.shared.endpoints import NO_KEY, check_served, key_for, places_of, reach_any, server_facts
from loupe.engines.shared.memory import keep_freed_memory
from loupe.engines.shared.page_images import parse_rule
from loupe.engines.shared.page_reader import page_reader
from loupe.engines.shared.posting import open_session
from loupe.engines.shared.redaction import Redaction, redacted
from loupe.runs.info import digest_of
from loupe.types import Engine

#: `-e openai:MODEL`
ARGUMENT = "model"
#: The model reads whole pages itself; a pipeline would cut them up first (`loupe reproduce` tells the two apart).
WAY = "direct"
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
        long = {"stop": self.stop, "system": self.system, "body": redacted(self.extra_body)}
        return fixed | {key: digest_of([value])[:8] for key, value in long.items() if value}

    def defining(self) -> dict[str, Any]:
        """Where a server stands, and how long we wait for it, changes no answer; one that we start says what does."""
        skipped = {"base_url", "api_key_env", "connect_timeout", *_STARTED_SERVER}
        return {key: value for key, value in super().defining().items() if key not in skipped}

    def stored(self) -> dict[str, Any]:
        """All settings but keys; an address may come without `http://`."""
        urls = self.base_url
        shorter = shown(address(urls)) if isinstance(urls, str) else [shown(address(url)) for url in urls]
        return {**super().stored(), "base_url": shorter}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Find the server and its model, then yield the engine that asks it.

    Raises EngineUnavailableError if no server answers or it refuses the key; UsageError if it has no such model, or if
    there are several servers or models to choose from.
    """
    import aiohttp

    keep_freed_memory()
    key = key_for(settings.base_urls, settings.api_key_env, os.environ)
    redaction = Redaction.of(key if key != NO_KEY else "", settings.base_urls, settings.extra_body)
    concurrency = settings.concurrency if isinstance(settings.concurrency, int) else _MOST_AT_ONCE
    connector = aiohttp.TCPConnector(limit=concurrency, keepalive_timeout=60, ttl_dns_cache=300)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"loupe/{__version__}",
    }
    async with open_session(
        connector=connector,
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=settings.timeout, sock_connect=settings.connect_timeout),
    ) as session:
        with redaction.errors():
            found, silent = await reach_any(settings.base_urls, session, connect_timeout=settings.connect_timeout)
            model = settings.model or choose_model(found[0].endpoint, found[0].server)
            check_served(model, found)
        facts = {name: redaction.text(fact) for name, fact in server_facts(model, found, silent).items()}
        async with page_reader(timeout=settings.timeout) as reader:
            bodies = ChatBodies(settings, parse_rule(settings.image), model, reader)
            client = ChatClient(settings, model, redaction, session, bodies, concurrency)
            client.pool = EndpointPool(places_of(model, found, silent), client.is_up)
            for place in client.pool.places[len(found) :]:
                client.pool.take_out(place)
            try:
                yield Engine(predict=client.predict, healthy=client.healthy, facts=facts, status=client.pool.status)
            finally:
                await client.pool.close()
