"""One server at a time: the one that the next run wants is started, used again, or takes the place of the one before.

Source: docs/protocols/engines.md#server-start (ports, reuse) and #server-stop (one server at a time).
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

import msgspec

from loupe.engines.chat.endpoints import NO_KEY
from loupe.engines.registry import Profile
from loupe.errors import LoupeError, UsageError
from loupe.files.folder import Folder
from loupe.servers.left_over import left_over, stop_left_over
from loupe.servers.ports import free_port, is_free, listener
from loupe.servers.record import owner
from loupe.servers.server import Server, new_record
from loupe.servers.server_probes import talk_to
from loupe.servers.wanted import Wanted, wanted_server
from loupe.servers.watch import USUAL, Patience, Watch

T = TypeVar("T")


class Keeper:
    """Holds the server of this process. Leaving the block stops it; so does the end of the interpreter."""

    def __init__(self, patience: Patience = USUAL, *, say: Callable[[str], None] = lambda _: None) -> None:
        self._patience = patience
        self._say = say
        self._current: Server | None = None

    def __enter__(self) -> Keeper:
        atexit.register(self.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        atexit.unregister(self.close)

    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop the server. Ctrl-C, or SIGTERM, while it takes its time kills it."""
        server, self._current = self._current, None
        if server is None or server.external:
            return
        if server.is_alive():
            self._say(f"stopping {server.title}; Ctrl-C kills it")
        server.stop(hurry)
        for line in server.what_stays():
            self._say(line)

    async def server_for(self, wanted: Wanted, folder: Folder, *, key: str, watch: Watch) -> Server:
        """The running server that `wanted` describes; `folder` is the run's, whose `server.json` and log it gets.

        In this order: the one that runs for the run before, one that a killed run left behind, one that answers at the
        port already, a new one. What else was left behind is stopped. Raises UsageError if somebody else has the port.
        """
        current = self._current
        if current is not None and current.wanted.identity == wanted.identity and await _is_well(current):
            current.join(folder)
            return current
        await asyncio.to_thread(self.close, watch.hurry)
        watch.say(f"looking for {wanted.template.title}")
        self._current = await self._left_over(wanted, folder, key, watch)
        if self._current is not None:
            return self._current
        port = wanted.port or free_port()
        if not is_free(port):
            self._current = await self._external(wanted, port, folder)
            return self._current
        server = Server(wanted, new_record(wanted, port), folder=folder, key=key, patience=self._patience)
        self._current = server
        try:
            await server.start(watch)
        except BaseException:
            self._current = None
            raise
        return server

    async def _left_over(self, wanted: Wanted, folder: Folder, key: str, watch: Watch) -> Server | None:
        """A left-over server that is the one wanted, and well. The others are stopped: they are ours."""
        found: Server | None = None
        for place, record in await asyncio.to_thread(lambda: list(left_over(folder.root))):
            mine = msgspec.structs.replace(record, origin="left over", owner=owner(), restarts=0)
            server = Server(wanted, mine, folder=place, key=key, patience=self._patience)
            same = record.identity == wanted.identity and wanted.port in (0, record.port)
            if found is None and same and server.is_alive() and await _is_well(server):
                server.join(folder)
                found = server
            else:
                watch.say(f"stopping the server that a killed run left behind (process {record.pid})")
                await asyncio.to_thread(stop_left_over, place, record, self._patience.stop, watch.hurry)
        return found

    async def _external(self, wanted: Wanted, port: int, folder: Folder) -> Server:
        """The server that answers at a taken port, if it is of the kind and has the model. Raises UsageError if not.

        Nobody named it, so it gets no key.
        """
        async with talk_to(port, NO_KEY) as talk:
            kind, models = await talk.kind_and_models()
        if kind == wanted.template.says and {wanted.name, f"{wanted.name}:latest"} & set(models):
            server = Server(wanted, new_record(wanted, port, external=True), folder=folder, key=NO_KEY)
            server.join(folder)
            return server
        holder = await asyncio.to_thread(listener, port)
        who = f"{holder[1]} (process {holder[0]})" if holder else "another program"
        what = f", which serves {', '.join(models[:3])}" if models else ""
        raise UsageError(
            f"port {port} is taken by {who}{what}; wanted is {wanted.template.title} with {wanted.name}",
            hint="choose another port: --server-port auto, or --server-port N",
        )


def started_once(plans: Sequence[T], profile_of: Callable[[T], Profile]) -> list[T]:
    """The plans in an order in which each server is started once: those that want the same one stand together."""
    groups: dict[str, list[T]] = {}
    for plan in plans:
        wanted = wanted_server(profile_of(plan))
        groups.setdefault(wanted.identity if wanted else "", []).append(plan)
    return [plan for group in groups.values() for plan in group]


async def _is_well(server: Server) -> bool:
    """Whether a server that was ready before still is."""
    if not server.is_alive():
        return False
    async with talk_to(server.record.port, server.key) as talk:
        with suppress(LoupeError):
            return await talk.is_ready(server.wanted)
    return False
