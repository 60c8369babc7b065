"""Read the body of a server's answer, which may be endless, within a bound on the bytes of all large answers.

Whoever asks opens a `hold` around an answer, from the request until it is stored; reading the body makes it grow. What
an answer costs while it is decoded, looked through and written is up to four times its bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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


#: Bytes of answers that are held at once, together.
MOST_TOGETHER = 64_000_000
#: A smaller answer counts for nothing: hundreds of these are no burden.
SMALL = 256_000
#: An answer grows in steps of so many bytes.
_STEP = 1_000_000


@dataclass(slots=True)
class AnswerMemory:
    """The bytes held by one run. The oldest large answer may always grow, so there is no dead end.

    Together at most `most` bytes, that oldest one (which its reader bounds), and the small ones.
    """

    most: int = MOST_TOGETHER
    _held: dict[object, int] = field(default_factory=dict)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Count what is read in this block until its end."""
        key = object()
        before = _current.set((self, key))
        try:
            yield
        finally:
            _current.reset(before)
            self.let_go(key)

    async def grow(self, key: object, size: int) -> None:
        """Wait until an answer may be `size` bytes long."""
        if size <= max(SMALL, self._held.get(key, 0)):
            return
        size += _STEP
        self._held.setdefault(key, 0)
        while key is not next(iter(self._held)) and sum(self._held.values()) - self._held[key] + size > self.most:
            self._freed.clear()
            await self._freed.wait()
        self._held[key] = size

    def let_go(self, key: object) -> None:
        """An answer is stored, or given up."""
        if self._held.pop(key, None) is not None:
            self._freed.set()


_current: ContextVar[tuple[AnswerMemory, object] | None] = ContextVar("loupe_answer_memory", default=None)


async def make_room(size: int) -> None:
    """Wait until the answer that is being read may be `size` bytes long; at once where nobody counts."""
    if (current := _current.get()) is not None:
        memory, key = current
        await memory.grow(key, size)


def give_up_room() -> None:
    """The answer that was being read is of no use."""
    if (current := _current.get()) is not None:
        memory, key = current
        memory.let_go(key)
