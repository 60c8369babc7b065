"""The viewer on a loopback address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from loupe.web import server
from loupe.web.view.app import VIEW_POLICY, application
from loupe.web.view.shelf import Shelf


async def serve(
    roots: Sequence[Path], *, port: int, on_ready: Callable[[str], None], stop: asyncio.Event, measure: str = ""
) -> None:
    """Serve the runs below these folders, ranked by `measure`, until `stop` is set; see `loupe.web.server`."""
    await server.serve(
        application(Shelf(roots, measure)),
        name="view",
        ports=[port],
        on_ready=on_ready,
        stop=stop,
        policy=VIEW_POLICY,
    )
