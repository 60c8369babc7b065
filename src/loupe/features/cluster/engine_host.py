"""A worker of an engine on a node: an actor that opens the engine as one machine would, and hands it pages.

The engine's own processes and its server live below the actor, so that a page which kills them is that page's error
there as here. What ends with the actor itself is judged by the driver (`engine_pool.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from loupe.engines.chat.settings import Settings as ChatSettings
from loupe.engines.python import Settings as PythonSettings
from loupe.engines.registry import Profile
from loupe.errors import EngineError, EngineUnavailableError, LoupeError, in_words, no_room
from loupe.features.cluster.pages import NODE_FOLDER, Shipped, Spool, Stored, named_again
from loupe.features.cluster.sameness import differences
from loupe.files.folder import Folder
from loupe.files.foreign import read_data
from loupe.files.scratch import scratch_folder
from loupe.types import Engine, Output, Request
from loupe.workers.limits import share_cores

#: Requests that an engine of its own server takes at once where the profile leaves that to the server's speed.
MOST = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a worker is to be: the engine, the driver's `versions`, and `cores` that it may count on.

    `code` is the file of a Python function with what lies beside it, by name.
    """

    profile: Profile
    versions: Mapping[str, str]
    cores: int
    code: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def serves(self) -> bool:
        """Whether each worker has a model server of its own."""
        return isinstance(self.profile, ChatSettings) and bool(self.profile.serve)

    @property
    def places(self) -> int:
        """Requests that one worker works on at once."""
        wanted = self.profile.concurrency if self.serves else 1
        return wanted if isinstance(wanted, int) else MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a worker says when it is open: facts of the engine, and how many such workers this node is good for.

    `is_watched`: the engine has a health to be asked for.
    """

    facts: dict[str, str]
    fits: int
    is_watched: bool


class NodeError(LoupeError):
    """The node lacks something, so that no page can be blamed; another one may read."""


class EngineHost:
    """The actor. Errors that Loupe raises come back as values: Ray would wrap them."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._engine: Engine | None = None
        self._places = asyncio.Semaphore(1)
        self._spool: Spool | None = None

    async def open(self, order: Order) -> Opened | LoupeError:
        """Open the engine; gives back what that raised, and for a node that is not as the driver is."""
        if differ := differences(order.versions):
            return EngineUnavailableError(f"other versions: {differ}", hint="install the same on every node")
        try:
            return await self._open(order)
        except LoupeError as error:
            await self._stack.aclose()
            return error

    async def _open(self, order: Order) -> Opened:
        from loupe.servers.keeper import open_profile

        folder = self._stack.enter_context(scratch_folder(NODE_FOLDER))
        self._spool = Spool(folder)
        profile, names = _settled(order, folder)
        fits = _fits(order.profile)
        share_cores(order.cores)
        self._places = asyncio.Semaphore(order.places)
        self._engine = await self._stack.enter_async_context(open_profile(profile, folder=Folder(folder / "server")))
        if self._engine.divide is not None:
            raise EngineUnavailableError(
                "engines that read a page in parts do not run on a cluster",
                hint="leave out --on; or start their model server there, and name it with --base-url",
            )
        facts = {name: named_again(text, names) for name, text in self._engine.facts.items()}
        return Opened(facts=facts, fits=fits, is_watched=self._engine.healthy is not None)

    async def ask(self, request: Request, files: Sequence[Shipped], *pieces: bytes | Stored) -> Output | LoupeError:
        """What the engine says of a request, with the seconds that this took it; `pieces` are its files."""
        assert self._engine is not None and self._spool is not None
        names = self._spool.hold(files)
        try:
            async with self._places:
                try:
                    request = await self._spool.unpack(request, files, pieces)
                except OSError as error:
                    return _of_the_node(error)
                began = time.monotonic()
                output = await self._engine.predict(request)
                seconds = round(time.monotonic() - began, 4)
                return replace(output, seconds=seconds if output.seconds is None else output.seconds)
        except Exception as error:  # noqa: BLE001  a worker's border: it is the error of this sample
            if no_room(error) is not None:
                return _of_the_node(error)
            if not isinstance(error, LoupeError):
                return EngineError(named_again(f"{type(error).__name__}: {error}", names))
            error.rewrite(lambda text: named_again(text, names))
            return error
        finally:
            self._spool.release(names)

    async def healthy(self) -> bool | LoupeError:
        """Whether the engine as a whole works."""
        assert self._engine is not None
        try:
            return self._engine.healthy is None or await self._engine.healthy()
        except LoupeError as error:
            return error

    async def close(self) -> None:
        """End the engine, its processes, its server and its files."""
        await self._stack.aclose()


def _of_the_node(error: BaseException) -> NodeError:
    """What the disk of a node says, without the name of a file that nobody knows."""
    said = no_room(error)
    return NodeError(f"pages cannot be laid down there: {said.strerror if said else in_words(error)}")


def _settled(order: Order, folder: Path) -> tuple[Profile, dict[str, str]]:
    """The profile as it holds on this node, and what the driver calls the places in it."""
    profile = order.profile
    if isinstance(profile, ChatSettings):
        return msgspec.structs.replace(profile, server_port="auto"), {}
    if not order.code:
        return msgspec.structs.replace(profile, concurrency=1), {}
    code = folder / "code"
    code.mkdir()
    for name, content in order.code.items():
        (code / name).write_bytes(content)
    assert isinstance(profile, PythonSettings)  # of no other kind is code sent
    path, _, called = profile.function.rpartition(":")
    here = str(code / Path(path).name)
    return msgspec.structs.replace(profile, concurrency=1, function=f"{here}:{called}"), {here: path}


def _fits(profile: Profile) -> int:
    """How many processes of this engine this machine would start; as many as its cores and memory bear by default."""
    if profile.concurrency is not None:
        return profile.concurrency if isinstance(profile.concurrency, int) else 1
    [found] = [one for one in msgspec.structs.fields(type(profile)) if one.name == "concurrency"]
    usual = found.default_factory() if found.default_factory is not msgspec.NODEFAULT else found.default
    return usual if isinstance(usual, int) else 1


def code_of(profile: Profile) -> dict[str, bytes]:
    """The Python files that a function of the user's needs beside it: those of its folder."""
    function = getattr(profile, "function", "")
    path = Path(function.rpartition(":")[0]) if profile.kind == "python" else Path()
    if path.suffix != ".py" or not path.is_file():
        return {}
    return {each.name: read_data(each) for each in sorted(path.parent.glob("*.py")) if each.is_file()}
