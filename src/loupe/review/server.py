"""A review on a loopback address."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from loupe.review.app import application
from loupe.review.documents import Documents
from loupe.review.session import Review
from loupe.web import server

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
        port=port or 0,
        usual=usual if port is None else 0,
        on_ready=on_ready,
        stop=stop,
    )
