"""A review on a loopback address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from loupe.review.app import application
from loupe.review.documents import Documents
from loupe.review.session import Review
from loupe.web import server


async def serve(review: Review, data: Path, *, port: int, on_ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Serve the review until `stop` is set; see `loupe.web.server`."""
    await server.serve(
        application(review, Documents(data)),
        name="review",
        port=port,
        on_ready=on_ready,
        stop=stop,
    )
