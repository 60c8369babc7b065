"""Markdown and tables as HTML that can do no harm, made in a worker process: hostile text costs one preview."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from loupe.engines.workers.isolation import WorkerPool, worker_pool
from loupe.engines.workers.worker import Loaded
from loupe.errors import EngineError
from loupe.typed import encode_json, json_decoder
from loupe.types import Request

_SECONDS = 8.0


class Preview(msgspec.Struct):
    """Safe HTML, and what a reader must know about it."""

    html: str = ""
    notice: str = ""


def load() -> Loaded:
    """The worker's side."""
    return Loaded(read=_read)


def _read(request: Request) -> str:
    from loupe.report.markup import render_markdown

    rendered = render_markdown(request.text)
    return encode_json(Preview(rendered.html, rendered.notice)).decode()


class Previews:
    """Renders texts. Use `previews`, which opens it."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def render(self, text: str) -> Preview:
        """The text as HTML, or why there is none."""
        try:
            output = await self._pool.ask(Request(id="preview", text=text), timeout=_SECONDS)
        except EngineError as error:
            return Preview(notice=f"No preview: {error.message}")
        return json_decoder(Preview).decode(output.text)


@asynccontextmanager
async def previews() -> AsyncIterator[Previews]:
    """One worker, none before the first preview."""
    async with worker_pool("loupe.web.review.previews:load", {}, workers=1, lazy=True) as pool:
        yield Previews(pool)
