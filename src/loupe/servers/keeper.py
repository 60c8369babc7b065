"""One server at a time, kept for the next run, and the engine behind it.

When the server dies, it is started again, and what was in flight is repeated. Source:
docs/protocols/engines.md#server-start (ports, reuse), #server-stop (one server at a time), #health-check (verdicts) and
#crash-and-restart (crash, restart, poison samples).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TypeVar

import msgspec

from loupe.engines.chat.endpoints import NO_KEY, STARTED, key_for
from loupe.engines.chat.settings import Settings
from loupe.engines.pages.page_reader import with_anchors
from loupe.engines.registry import Profile, engine_module
from loupe.errors import EngineError, EngineTimeoutError, LoupeError, TransientEngineError, UsageError
from loupe.files.folder import Folder
from loupe.servers.processes import NOBODY, USUAL, Patience, Watch
from loupe.servers.record import left_over, owner, stop_left_over
from loupe.servers.server import Server, new_record
from loupe.servers.server_probes import free_port, is_free, listener, talk_to
from loupe.servers.wanted import Wanted, wanted_server
from loupe.types import Engine, Output, Request

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
    """True if a server that was ready before still is."""
    if not server.is_alive():
        return False
    async with talk_to(server.record.port, server.key) as talk:
        with suppress(LoupeError):
            return await talk.is_ready(server.wanted)
    return False


#: A sample that was in flight so many times when the server died is not asked again.
POISON = 2
#: Seconds between two looks at a server that may be dying: its connections break a moment before it is gone.
_LOOKS = (0.0, 0.1, 0.2, 0.4)


@asynccontextmanager
async def open_profile(
    profile: Profile, *, folder: Folder, keeper: Keeper | None = None, watch: Watch = NOBODY
) -> AsyncIterator[Engine]:
    """Open the engine of a profile; where the profile wants a server, have it started first.

    `folder` is that of the run, for the log and the record of the server. Without a `keeper` the server is stopped when
    the block ends. Raises what starting the server and opening the engine raise.
    """
    wanted = wanted_server(profile)
    if wanted is None or not isinstance(profile, Settings):
        async with (
            engine_module(profile.kind).open_engine(profile) as engine,
            with_anchors(engine, timeout=profile.timeout) as anchored,
        ):
            yield anchored
        return
    folder.create()
    key = key_for(STARTED, profile.api_key_env, os.environ)
    with ExitStack() as stack:
        keeper = keeper or stack.enter_context(Keeper())
        server = await keeper.server_for(wanted, folder, key=key, watch=watch)
        try:
            async with (
                engine_module(profile.kind).open_engine(_pointed_to(server, profile)) as engine,
                with_anchors(engine, timeout=profile.timeout) as anchored,
            ):
                server.note_version(engine.facts.get("server_version", ""))
                yield _guard(server, anchored, watch)
        finally:
            if watch.hurry():
                keeper.close(watch.hurry)


def _pointed_to(server: Server, profile: Settings) -> Settings:
    return msgspec.structs.replace(profile, base_url=server.base_url, model=server.wanted.name)


def _guard(server: Server, engine: Engine, watch: Watch) -> Engine:
    """The engine with what is known of its server; one of ours is healed when it dies."""
    engine = replace(engine, facts={**engine.facts, **server.facts})
    if server.external:
        return engine
    guarded = _Guarded(server, engine, watch)
    return replace(engine, predict=guarded.predict, healthy=guarded.healthy)


@dataclass(slots=True)
class _Guarded:
    """Asks the engine, and heals its server.

    Whoever was in flight when the server died is asked again alone, and nobody else meanwhile: a page that kills the
    server a second time is then known, and takes no innocent one with it.
    """

    server: Server
    inner: Engine
    watch: Watch
    _crashes: Counter[str] = field(default_factory=Counter)
    _suspects: set[str] = field(default_factory=set)
    _calm: asyncio.Event = field(default_factory=asyncio.Event)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    _healing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _life: int = 0
    _dead_life: int = -1
    _last_answer: float = float("-inf")
    _given_up: LoupeError | None = None

    def __post_init__(self) -> None:
        self._calm.set()

    async def predict(self, request: Request) -> Output:
        """The answer, whatever becomes of the server meanwhile. Raises EngineError for a page that kills it."""
        output: Output | None = None
        try:
            while output is None:
                if request.id in self._suspects:
                    async with self._alone:
                        output = await self._try(request)
                elif self._calm.is_set():
                    output = await self._try(request)
                else:
                    await self._calm.wait()
        finally:
            self._suspects.discard(request.id)
            if not self._suspects:
                self._calm.set()
        return output

    async def healthy(self) -> bool:
        """True if the server is well, or was started again. Raises EngineUnavailableError if that fails."""
        async with self._looking:
            life = self._life
            well = await self._is_well()
        if not well:
            await self._heal(life)
        return True

    async def _try(self, request: Request) -> Output | None:
        """The answer, or None if the server died under it. Raises EngineError the second time."""
        if self._dead_life == self._life:
            await self._heal(self._life)
        life = self._life
        try:
            output = await self.inner.predict(request)
        except EngineTimeoutError:
            # Where others get their answers, it is this page that takes too long.
            if time.monotonic() - self._last_answer < self.server.patience.deep or not await self._hangs(life):
                raise
        except TransientEngineError as error:
            if error.rate or not await self._died(life):
                raise
        else:
            self._last_answer = time.monotonic()
            return output
        self._crashes[request.id] += 1
        self._suspects.add(request.id)
        self._calm.clear()
        # Started again for whoever asks next: after the last page there is nobody.
        self._dead_life = max(life, self._dead_life)
        if self._crashes[request.id] >= POISON:
            raise EngineError(f"the server died {POISON} times while it read this sample; it is left out")
        return None

    async def _died(self, life: int) -> bool:
        """True if the server that the request went to is dead."""
        for pause in _LOOKS:
            await asyncio.sleep(pause)
            if self._is_over(life) or await asyncio.to_thread(self.server.is_gone):
                return True
        return False

    async def _hangs(self, life: int) -> bool:
        """True if the server that the request went to answers nobody any more."""
        async with self._looking:
            return self._is_over(life) or not await self._is_well()

    def _is_over(self, life: int) -> bool:
        """True if the server of this life is known to be dead."""
        return life != self._life or life == self._dead_life or self._healing.locked()

    async def _is_well(self) -> bool:
        """Slow twice in a row counts as dead."""
        verdict = await self.server.health()
        if verdict == "slow":
            verdict = await self.server.health()
        return verdict == "ok"

    async def _heal(self, life: int) -> None:
        """Start the server again, once for all who find it dead."""
        async with self._healing:
            if self._given_up is not None:
                raise self._given_up
            if life != self._life:
                return
            try:
                await self.server.restart(self.watch)
            except LoupeError as error:
                self._given_up = error
                raise
            self._life += 1
