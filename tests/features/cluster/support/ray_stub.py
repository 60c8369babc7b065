"""What Ray does for Loupe, in this process, for what no real cluster does on demand: nodes that are full, or just dead.

Actors are the real classes, or stand-ins for them; `faults` are asked before each call, and may raise what Ray raises.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from loupe.features.cluster.nodes import Node

Fault = Callable[[str, str, Any, tuple[Any, ...]], None]


class RayError(Exception):
    """An actor is gone."""


class RayTaskError(RayError):
    """An actor has raised something."""


class Reference:
    """What a call will give back."""

    def __init__(self, future: Future[Any] | asyncio.Future[Any]) -> None:
        self.future = future

    def __await__(self) -> Iterator[Any]:
        assert isinstance(self.future, asyncio.Future)
        return self.future.__await__()


class StubRay:
    """The module `ray`. `faults(node, method, actor, arguments)` comes before each call; `stand_ins` replace actors."""

    class exceptions:  # noqa: N801  as the module calls it
        """Its errors."""

        RayError, RayTaskError = RayError, RayTaskError

    def __init__(self, faults: Fault, stand_ins: Mapping[type, type] | None = None) -> None:
        self.faults = faults
        self.stand_ins = stand_ins or {}
        self.actors: list[Actor] = []
        self.threads = ThreadPoolExecutor(max_workers=32)

    def put(self, value: Any) -> Any:
        return value

    def remote(self, kind: type) -> Any:
        return _Kind(self, self.stand_ins.get(kind, kind))

    def get(self, reference: Reference, timeout: float | None = None) -> Any:
        return reference.future.result(timeout)  # type: ignore[call-arg]

    def wait(
        self, references: Sequence[Reference], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[list[Reference], list[Reference]]:
        done = wait([each.future for each in references], timeout).done  # type: ignore[misc]
        return [each for each in references if each.future in done], []

    def kill(self, actor: Actor) -> None:
        actor.die()

    def shutdown(self) -> None:
        """End what actors have started, also those that died."""
        self.threads.shutdown()
        for actor in self.actors:
            actor.host.close()


class _Kind:
    def __init__(self, ray: StubRay, kind: type) -> None:
        self._ray, self._kind = ray, kind

    def options(self, *, scheduling_strategy: Any, **_: Any) -> _Kind:
        self._node = bytes.fromhex(scheduling_strategy.node_id).rstrip(b"\0").decode()
        return self

    def remote(self) -> Actor:
        actor = Actor(self._ray, self._kind(), self._node)
        self._ray.actors.append(actor)
        return actor


class Actor:
    """One on a node; `die` ends it with all that it is asked."""

    def __init__(self, ray: StubRay, host: Any, node: str) -> None:
        self.ray, self.host, self.node = ray, host, node
        self.dead = False
        self._tasks: list[asyncio.Future[Any]] = []

    def die(self) -> None:
        self.dead = True
        for task in self._tasks:
            task.cancel()

    def __getattr__(self, name: str) -> Any:
        return _Method(self, name)

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self.dead:
            raise RayError("The actor died.")
        try:
            self.ray.faults(self.node, name, self, arguments)
            return getattr(self.host, name)(*arguments)
        except RayError:
            raise
        except Exception as error:  # noqa: BLE001  as Ray does
            raise RayTaskError(f"{type(error).__name__}: {error}") from None

    async def wait(self, name: str, arguments: tuple[Any, ...]) -> Any:
        task = asyncio.ensure_future(self.call(name, arguments))
        self._tasks.append(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self.dead:
                raise
            raise RayError("The actor died.") from None


class _Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self._actor, self._name = actor, name

    def remote(self, *arguments: Any) -> Reference:
        if inspect.iscoroutinefunction(getattr(self._actor.host, self._name)):
            return Reference(asyncio.ensure_future(self._actor.wait(self._name, arguments)))
        return Reference(self._actor.ray.threads.submit(self._actor.call, self._name, arguments))


class StubNodes:
    """The nodes of a cluster, by name, each with so many CPUs."""

    def __init__(self, **cpus: int) -> None:
        self.cpus: dict[str, int] = dict(cpus)

    def now(self) -> dict[str, Node]:
        nodes = [Node(id=_ident(name), name=name, cpus=cpus, gpus=0) for name, cpus in self.cpus.items()]
        return {node.id: node for node in nodes}

    look = now


def _ident(name: str) -> str:
    """An id as Ray's are."""
    return name.encode().ljust(28, b"\0").hex()
