"""Any OpenAI-compatible chat server: vLLM, SGLang, llama-server, Ollama, LM Studio, mlx, public APIs.

Protocol: docs/protocols/engines.md#client. A page is read and encoded once per request, off the event loop if it is
work; retries send the same bytes. The scheduler decides about retries; here everything that can fail becomes its error
class.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from loupe.engines.chat.bodies import ChatBodies
from loupe.engines.chat.client import MOST_ANSWER_BYTES, ChatClient, is_up
from loupe.engines.chat.discovery import (
    addresses_of,
    choose_model,
)
from loupe.engines.chat.endpoints import (
    NO_KEY,
    EndpointPool,
    check_served,
    key_for,
    key_hint,
    places_of,
    reach_any,
    server_facts,
    source_of,
)
from loupe.engines.chat.exchange import Exchange, open_session
from loupe.engines.chat.settings import Settings
from loupe.engines.pages.page_images import parse_rule
from loupe.engines.pages.page_reader import page_reader
from loupe.engines.shared.redaction import Redaction
from loupe.errors import UsageError
from loupe.types import Engine
from loupe.workers.limits import keep_freed_memory

#: `-e openai:MODEL`
ARGUMENT = "model"
#: The model reads whole pages itself; a pipeline would cut them up first (`loupe reproduce` tells the two apart).
WAY = "direct"
#: Connections where the number of requests in flight follows the server.
_MOST_AT_ONCE = 256


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Find the server and its model, then yield the engine that asks it.

    Raises EngineUnavailableError if no server answers or it refuses the key; UsageError if it has no such model, or if
    there are several servers or models to choose from.
    """
    keep_freed_memory()
    if settings.serve and not settings.base_urls:
        raise UsageError(
            f"the profile needs its own server ({settings.serve}), which this command does not start",
            hint="start that server, and put its base_url into the profile in place of `serve`",
        )
    addresses = addresses_of(settings.base_url, os.environ)
    key = key_for(addresses, settings.api_key_env, os.environ)
    hint = key_hint(addresses, settings.api_key_env, os.environ)
    redaction = Redaction.of(key if key != NO_KEY else "", addresses.urls, settings.extra_body)
    concurrency = settings.concurrency if isinstance(settings.concurrency, int) else _MOST_AT_ONCE
    async with open_session(
        key,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        connections=concurrency,
        urls=addresses.urls,
    ) as session:
        with redaction.errors():
            found, silent = await reach_any(addresses, session, connect_timeout=settings.connect_timeout, key_hint=hint)
            model = settings.model or choose_model(found[0].endpoint, found[0].server)
            check_served(model, found)
        told = server_facts(model, found, silent) | source_of(addresses)
        facts = {name: redaction.text(fact) for name, fact in told.items()}
        async with page_reader(timeout=settings.timeout) as reader:
            bodies = ChatBodies(settings, parse_rule(settings.image), model, reader)
            exchange = Exchange(
                session=session,
                redaction=redaction,
                timeout=settings.timeout,
                connect_timeout=settings.connect_timeout,
                most=MOST_ANSWER_BYTES,
                key_hint=hint,
            )
            pool = EndpointPool(places_of(model, found, silent), partial(is_up, session, model))
            for place in pool.places[len(found) :]:
                pool.take_out(place)
            client = ChatClient(settings, model, exchange, bodies, pool, concurrency)
            try:
                yield Engine(predict=client.predict, healthy=client.healthy, facts=facts, status=pool.status)
            finally:
                await pool.close()
