"""Pictures of pages, and where texts stand on them: made by worker processes, kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from loupe.errors import EngineError, PageError
from loupe.typed import encode_json, json_decoder
from loupe.types import Output, PageSource, Request
from loupe.web.page_worker import Found, Order
from loupe.workers.pool import WorkerPool, worker_pool

#: Longer sides that a browser may ask for, in pixels: a page at a glance, at full width, enlarged.
SIZES = (1000, 1600, 2400, 3600)
_SECONDS = 60.0
_ROOM = 192 << 20


class Pages:
    """Draws pages; what was drawn last is kept. Use `page_pictures`, which opens it."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0

    async def draw(self, source: PageSource, longest: int) -> bytes:
        """The page as a PNG. Raises PageError, also if drawing it takes too long or crashes."""
        key = (*_stamp(source), longest)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        output = await self._ask(source, Order(task="draw", longest=longest))
        data = bytes((output.response or {})["data"])
        self._keep(key, data)
        return data

    async def find(self, source: PageSource, phrases: Sequence[str]) -> Found:
        """The size of the page, and where each phrase stands: boxes in fractions of the page. Raises PageError."""
        output = await self._ask(source, Order(task="find", phrases=list(phrases)))
        return json_decoder(Found).decode(output.text)

    async def _ask(self, source: PageSource, order: Order) -> Output:
        request = Request(id=order.task, prompt=encode_json(order).decode(), images=(source,))
        try:
            return await self._pool.ask(request, timeout=_SECONDS)
        except EngineError as error:
            raise PageError(f"the page cannot be read: {error.message}") from None

    def _keep(self, key: tuple[object, ...], data: bytes) -> None:
        self._bytes += len(data) - len(self._kept.pop(key, b""))
        self._kept[key] = data
        while self._bytes > _ROOM:
            self._bytes -= len(self._kept.popitem(last=False)[1])


def _stamp(source: PageSource) -> tuple[object, ...]:
    """The mark by which a file is known to be still the same."""
    path = source if isinstance(source, Path) else source.path
    try:
        found = path.stat()
    except OSError as error:
        raise PageError(f"{path.name}: {error.strerror}") from None
    return source, found.st_mtime_ns, found.st_size


@asynccontextmanager
async def page_pictures() -> AsyncIterator[Pages]:
    """Up to two workers, none before the first page."""
    async with worker_pool("loupe.web.page_worker:load", {}, workers=2, lazy=True, bounded=True) as pool:
        yield Pages(pool)
