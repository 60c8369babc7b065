"""Limit how many requests may wait, and how much memory their bodies may take together.

A body that finds no room is not read, so its sender waits until others are decoded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from loupe.features.serve.api_errors import ApiError

if TYPE_CHECKING:
    from aiohttp import web

#: More requests than this do not wait: the next one is sent away.
_MOST_REQUESTS = 256
#: Seconds for a body to arrive, and bytes a second that it must be worth on top.
_SECONDS, _PACE = 30, 10**6


class Body:
    """The body of a request, and the room that it holds until it is cleared."""

    def __init__(self, room: WaitingRoom) -> None:
        self.data = bytearray()
        self.held = 0
        self._room = room

    def clear(self) -> None:
        """Forget the bytes and make room for other bodies."""
        self.data.clear()
        self._room.leave(self)


class WaitingRoom:
    """The requests that have come and are not answered yet, with bodies of at most so many bytes each.

    All bodies share room for one of the largest size. As much again is for a single body that does not fit in there:
    it can always be read to its end, and such bodies take turns in the order in which they came.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._requests = 0
        self._free = most_bytes
        self._large: Body | None = None
        self._waiting: deque[Body] = deque()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def body(self, request: web.Request) -> AsyncIterator[Body]:
        """Read the body of a request, which counts as waiting until the block ends; clear the body once it is decoded.

        Raises ApiError for a body that is too large or too slow, and if too many requests wait.
        """
        size = request.content_length or 0
        if size > self._most:
            raise too_large(self._most)
        if self._requests >= _MOST_REQUESTS:
            raise ApiError(503, f"{_MOST_REQUESTS} requests are waiting already", code="engine_busy", retry=True)
        self._requests += 1
        body = Body(self)
        try:
            await self._take(body, size)
            await self._read(request, body)
            yield body
        finally:
            body.clear()
            self._requests -= 1

    def leave(self, body: Body) -> None:
        """Take back the room of a body."""
        if self._large is body:
            self._large = None
        else:
            self._free += body.held
        body.held = 0
        self._left.set()

    async def _take(self, body: Body, size: int) -> None:
        """Wait until there is room for so many more bytes of a body."""
        if self._large is not body and size > self._free:
            self._waiting.append(body)
            try:
                while size > self._free and (self._large or self._waiting[0] is not body):
                    self._left.clear()
                    await self._left.wait()
            finally:
                self._waiting.remove(body)
                self._left.set()
            if size > self._free:
                self._free += body.held
                self._large = body
                self._left.set()
        if self._large is not body:
            self._free -= size
        body.held += size

    async def _read(self, request: web.Request, body: Body) -> None:
        """Read to the end. Without a stated length, the body takes its room as the bytes arrive."""
        seconds = _SECONDS + (self._most if request.content_length is None else request.content_length) / _PACE
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        try:
            async with asyncio.timeout_at(end) as limit:
                async for part in request.content.iter_any():
                    size = len(body.data) + len(part)
                    if size > self._most:
                        raise too_large(self._most)
                    if size > body.held:
                        # The sender is not to blame for this wait.
                        limit.reschedule(None)
                        since = clock()
                        await self._take(body, size - body.held)
                        end += clock() - since
                        limit.reschedule(end)
                    body.data += part
        except TimeoutError:
            raise ApiError(408, f"the body did not arrive within {seconds:.0f} s", code="body_too_slow") from None


def too_large(most: int) -> ApiError:
    """Return the error of a body with more bytes than `most`."""
    return ApiError(413, f"the body is larger than {most // 10**6} MB", code="body_too_large")
