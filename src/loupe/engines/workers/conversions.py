"""Documents that are converted as a whole: once each, however many of their pages are asked for, and when."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from loupe.errors import EngineError, EngineTimeoutError, TransientEngineError

#: Characters of finished documents that are kept; beyond, those asked for longest ago are let go.
_KEPT = 100_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """The texts of a document's pages, in order, and the seconds that a page took."""

    pages: list[str]
    seconds: float

    @property
    def size(self) -> int:
        """Characters of all pages."""
        return sum(map(len, self.pages))


@dataclass(slots=True)
class Conversions:
    """Use `conversions`, which ends what still runs."""

    _tasks: OrderedDict[Hashable, asyncio.Task[Document]] = field(default_factory=OrderedDict)
    _size: int = 0

    async def get(self, key: Hashable, convert: Callable[[], Awaitable[Document]]) -> Document:
        """The document under this key, converted by whoever asks first.

        Raises what converting it raised, to everybody who asks: a document that failed is not tried again in this run,
        but after an error that may pass. A timeout is one of the first page; the others fail for want of their
        document.
        """
        task = self._tasks.get(key)
        is_first = task is None
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._convert(convert))
        self._tasks.move_to_end(key)
        try:
            # Shielded: one page that is given up takes nothing from the others.
            return await asyncio.shield(task)
        except TransientEngineError:
            if self._tasks.get(key) is task:
                del self._tasks[key]
            raise
        except EngineTimeoutError as error:
            if is_first:
                raise
            raise EngineError(f"its document was not converted: {error.message}") from None

    async def close(self) -> None:
        """End what still runs; no program is left when this returns."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _convert(self, convert: Callable[[], Awaitable[Document]]) -> Document:
        document = await convert()
        self._size += document.size
        for key in [key for key, task in self._tasks.items() if task.done()] if self._size > _KEPT else []:
            task = self._tasks[key]
            if self._size > _KEPT and not task.cancelled() and task.exception() is None:
                self._size -= task.result().size
                del self._tasks[key]
        return document


@asynccontextmanager
async def conversions() -> AsyncIterator[Conversions]:
    """The documents of one engine while it is open."""
    documents = Conversions()
    try:
        yield documents
    finally:
        await documents.close()
