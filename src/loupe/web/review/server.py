"""A review on a loopback address."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from loupe.web import server
from loupe.web.review.app import application
from loupe.web.review.session import Review
from loupe.web.review.shown_documents import Documents

#: Ports that no system gives to connections by itself.
_FIRST_PORT, _PORTS = 20_000, 10_000


async def serve(
    review: Review, data: Path, *, port: int | None, on_ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve the review until `stop` is set; see `loupe.web.server`.

    Without a port it is the same one for the same file or folder each time, while that is free: tabs that were open
    when the last server died go on with the next one.
    """
    digest = hashlib.sha256(os.fsencode(review.path)).digest()
    usual = _FIRST_PORT + int.from_bytes(digest[:4]) % _PORTS
    await server.serve(
        application(review, Documents(data)),
        name="review",
        ports=[usual, 0] if port is None else [port],
        on_ready=on_ready,
        stop=stop,
    )
