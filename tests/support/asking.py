"""Asking the openai engine one question against a scripted server: what the engine's test modules have in common."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from loupe.engines.chat.settings import Settings
from loupe.engines.openai import open_engine
from loupe.types import Output, Request
from tests.support.chat_server import ChatServer, Received, chat_server

ASK = Request(id="a", prompt="Read this.", max_tokens=100)


def settings(base_url: str | list[str], **keys: Any) -> Settings:
    return msgspec.convert({"kind": "openai", "base_url": base_url, **keys}, Settings)


def ask(script: Any, request: Request = ASK, **keys: Any) -> tuple[Output, ChatServer]:
    """One question to a server with this script."""

    async def main() -> tuple[Output, ChatServer]:
        async with chat_server(script) as server, open_engine(settings(server.url, **keys)) as engine:
            return await engine.predict(request), server

    return asyncio.run(main())


def sent(request: Request = ASK, **keys: Any) -> Received:
    """What a server receives."""
    return ask("hello", request, **keys)[1].requests[0]
