"""The body of a server's answer, which may be endless."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from loupe.engines.shared.answer_memory import make_room
from loupe.errors import EngineError

if TYPE_CHECKING:
    import aiohttp


async def read_body(
    response: aiohttp.ClientResponse, most: int, *, see: Callable[[bytes], None] | None = None
) -> bytes:
    """The whole body; `see` gets each piece as it comes. Raises EngineError for one of more than `most` bytes.

    It waits while other large answers take the memory there is.
    """
    data = bytearray()
    async for chunk in response.content.iter_any():
        size = len(data) + len(chunk)
        if size > most:
            raise EngineError(f"the server's answer is longer than {most // 10**6} MB")
        await make_room(size)
        data += chunk
        if see is not None:
            see(chunk)
    return bytes(data)
