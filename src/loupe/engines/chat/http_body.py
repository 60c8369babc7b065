"""The body of a server's answer, which may be endless."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from loupe.engines.chat.answer_memory import SMALL, make_room
from loupe.errors import EngineError

if TYPE_CHECKING:
    import aiohttp


async def read_body(
    response: aiohttp.ClientResponse,
    most: int,
    *,
    see: Callable[[bytes], None] | None = None,
    limit: asyncio.Timeout | None = None,
) -> bytes:
    """The whole body; `see` gets each piece as it comes. Raises EngineError for one of more than `most` bytes.

    It waits while other large answers take the memory there is; `limit` is put off by that wait, which is not the
    server's.
    """
    data = bytearray()
    async for chunk in response.content.iter_any():
        size = len(data) + len(chunk)
        if size > most:
            raise EngineError(f"the server's answer is longer than {most // 10**6} MB")
        if size > SMALL:
            await _make_room(size, limit)
        data += chunk
        if see is not None:
            see(chunk)
    return bytes(data)


async def _make_room(size: int, limit: asyncio.Timeout | None) -> None:
    if limit is None or (end := limit.when()) is None:
        await make_room(size)
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    limit.reschedule(None)
    await make_room(size)
    limit.reschedule(end + loop.time() - began)
