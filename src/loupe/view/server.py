"""The viewer on a loopback address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from loupe.view.app import VIEW_POLICY, application
from loupe.view.shelf import Shelf
from loupe.web import server


async def serve(roots: Sequence[Path], *, port: int, on_ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Serve the runs below these folders until `stop` is set; see `loupe.web.server`."""
    await server.serve(
        application(Shelf(roots)),
        name="view",
        port=port,
        on_ready=on_ready,
        stop=stop,
        policy=VIEW_POLICY,
    )
