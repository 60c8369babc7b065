"""How many requests may wait, and how much memory their bodies may take together.

A body that finds no room is not read: its sender waits, as TCP makes him, until others are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from loupe.serving.api_errors import ApiError

if TYPE_CHECKING:
    from aiohttp import web

#: More requests than this do not wait: the next one is sent away.
_MOST_REQUESTS = 256
#: Seconds for a body to arrive, and bytes a second that it must be worth on top.
_SECONDS, _PACE = 30, 10**6


class WaitingRoom:
    """The requests that have come and are not answered yet, each of at most so many bytes.

    There is room for two of that size, so that a slow sender does not stop the others.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._requests = 0
        self._free = 2 * most_bytes
        self._left = asyncio.Event()

    @asynccontextmanager
    async def body(self, request: web.Request) -> AsyncIterator[bytearray]:
        """The body of a request, which has its place until the block ends; clear it once it is not needed any more.

        Raises ApiError for one that is too large or too slow, or where too many wait.
        """
        size = self._most if request.content_length is None else request.content_length
        if size > self._most:
            raise too_large(self._most)
        if self._requests >= _MOST_REQUESTS:
            raise ApiError(503, f"{_MOST_REQUESTS} requests are waiting already", code="engine_busy", retry=True)
        self._requests += 1
        try:
            await self._take(size)
            try:
                yield await self._read(request, size)
            finally:
                self._free += size
                self._left.set()
        finally:
            self._requests -= 1

    async def _take(self, size: int) -> None:
        while self._free < size:
            self._left.clear()
            await self._left.wait()
        self._free -= size

    async def _read(self, request: web.Request, size: int) -> bytearray:
        body = bytearray()
        seconds = _SECONDS + size / _PACE
        try:
            async with asyncio.timeout(seconds):
                async for part in request.content.iter_any():
                    body += part
                    if len(body) > self._most:
                        raise too_large(self._most)
        except TimeoutError:
            raise ApiError(408, f"the body did not arrive within {seconds:.0f} s", code="body_too_slow") from None
        return body


def too_large(most: int) -> ApiError:
    """The error of a body with more bytes than `most`."""
    return ApiError(413, f"the body is larger than {most // 10**6} MB", code="body_too_large")
