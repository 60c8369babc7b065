"""The workers of an engine on all nodes, as one engine: who is free gets the next page; who is lost is replaced.

Ray starts the workers, and says when one has died and whether its node died with it. A page in flight on a node that
died is asked again elsewhere, which is no attempt of its own. A page that was being read when a worker died is suspect:
it is read again while no other suspect is, and a second death is the fault of the page.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from loupe.engines.registry import WorkerNeeds
from loupe.errors import AccountError, EngineError, EngineUnavailableError, LoupeError, in_words
from loupe.features.cluster.engine_host import EngineHost, NodeError, Opened, Order
from loupe.features.cluster.nodes import Node, Nodes
from loupe.features.cluster.pages import Packing
from loupe.features.cluster.sameness import differing
from loupe.inference.concurrency import AdaptivePlaces, Places
from loupe.inference.progress import Progress
from loupe.runs.info import PLACES
from loupe.types import Engine, Output, Request

#: Requests in flight at most, whatever the size of the cluster.
_MOST = 4096
#: A worker that reads one page at a time has the next one waiting.
_AHEAD = 1
#: Seconds between two looks at the nodes, and at the first worker.
_LOOK, _OPENING = 1.0, 0.1
#: Deaths under one page: of workers on living nodes, and of nodes; and failed starts after which a node is left alone.
_WORKERS_LOST, _NODES_LOST, _FAILED_STARTS = 2, 5, 3
#: Seconds that a worker may take to end its engine, and over which the pace of a node is counted.
_CLOSE, _LIVE = 30.0, 30.0
#: Seconds that the first engines to open wait for those of other nodes, before they decide what the engine is.
_VOTING = 20.0


class ActorLostError(Exception):
    """A worker is gone with what it was doing. Never leaves the pool."""


@dataclass(slots=True, eq=False)
class _Worker:
    """The driver's side of one actor. `load` counts the requests that it has, `asked` are those that reached it."""

    actor: Any
    node: Node
    load: int = 0
    asked: dict[int, None] = field(default_factory=dict)
    _reading: frozenset[int] | None = None

    def was_reading(self, ident: int, places: int) -> bool:
        """True if a request was being worked on, and did not wait, when the worker died."""
        if self._reading is None:  # Those that waited are told of the death later than this first one.
            self._reading = frozenset(islice(self.asked, places))
        return ident in self._reading

    def acquit(self) -> None:
        """It ends for another reason than one of its requests."""
        self._reading = frozenset()


@dataclass(slots=True)
class _Losses:
    """The losses while reading one page: workers, and nodes with all their workers."""

    workers: int = 0
    nodes: int = 0

    def note(self, reason: str, *, node: bool, suspect: bool) -> None:
        """One more. Raises EngineError for the page under which too many died."""
        self.nodes += node
        self.workers += suspect and not node
        if self.workers >= _WORKERS_LOST:
            raise EngineError(f"its worker died {self.workers} times under this page: {reason}")
        if self.nodes >= _NODES_LOST:
            raise EngineError(f"{self.nodes} nodes died while they read this page")


@dataclass(slots=True)
class EnginePool:
    """Use `engine_pool`. `chosen`: only what a worker needs decides how many a node has; else the engine does, too.

    `known` are the facts of the engine by which the run was begun, if it was.
    """

    ray: Any
    nodes: Nodes
    order: Order
    needs: WorkerNeeds
    chosen: bool
    packing: Packing
    progress: Progress
    known: Mapping[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    is_watched: bool = False
    places: Places = field(init=False)
    _ready: dict[_Worker, None] = field(default_factory=dict)
    _opened: dict[_Worker, Opened] = field(default_factory=dict)
    _first_opened: float = 0.0
    _starting: Counter[str] = field(default_factory=Counter)
    _fits: dict[str, int] = field(default_factory=dict)
    _suspects: asyncio.Lock = field(default_factory=asyncio.Lock)
    _failed: Counter[str] = field(default_factory=Counter)
    _refused: dict[str, LoupeError] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _change: asyncio.Condition = field(default_factory=asyncio.Condition)
    _waiting: int = 0
    _host: Any = None
    _over: LoupeError | None = None
    _answered: deque[tuple[float, str]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        # Where the profile leaves the number to the speed, it goes by that of all servers together.
        adaptive = self.order.profile.concurrency == "auto"
        self.places = AdaptivePlaces(most=_MOST) if adaptive else Places(0, most=_MOST)

    @property
    def _room(self) -> int:
        """Requests that one worker has at once."""
        return self.order.places + (0 if self.order.serves else _AHEAD)

    async def open(self) -> None:
        """Return once a worker is ready. Raises what opening the engine raised where no node can."""
        self._host = self.ray.remote(EngineHost)
        self._spawn(self._watch())
        while not self._ready:
            if self._over is not None:
                raise self._over
            if self.progress.stopping:
                raise asyncio.CancelledError
            starting = sum(self._starting.values())
            note = f"starting {starting} workers" if starting else "waiting for a node that can read"
            self.progress.note = note
            await asyncio.sleep(_OPENING)
            self.progress.take_back(note)

    async def close(self) -> None:
        """End all workers; none is left when this returns."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._end(worker.actor) for worker in (*self._ready, *self._opened)))
        self._ready.clear()

    async def predict(self, request: Request) -> Output:
        """The answer, whatever becomes of nodes meanwhile.

        Raises what the engine raises, and EngineError for a page under which workers die.
        """
        lost = _Losses()
        while True:
            async with self._suspects if lost.workers else nullcontext():
                worker = await self._take()
                try:
                    answer = await self._ask(worker, request)
                except ActorLostError as error:
                    suspect = worker.was_reading(id(request), self.order.places)
                    lost.note(str(error), node=await self._retire(worker), suspect=suspect)
                    continue
                finally:
                    worker.asked.pop(id(request), None)
                    await self._give_back(worker)
            if isinstance(answer, Output):
                self._answered.append((time.monotonic(), worker.node.name))
                return replace(answer, endpoint=worker.node.name)
            fails = isinstance(answer, EngineUnavailableError) and not isinstance(answer, AccountError)
            if fails or isinstance(answer, NodeError):
                # This worker cannot go on, whatever else it was reading; another one may.
                worker.acquit()
                await self._retire(worker)
                await self._note_failure(worker.node, answer)
                # Unless it is the page that does it: no page fills a disk.
                lost.workers += fails
                if self._over is None and lost.workers < _WORKERS_LOST:
                    continue
            raise answer

    async def healthy(self) -> bool:
        """True if any worker's engine works. Raises what the last of them raised where none does."""
        found = await asyncio.gather(*(self._call(worker.actor.healthy.remote()) for worker in list(self._ready)))
        errors = [each for each in found if isinstance(each, LoupeError)]
        if errors and len(errors) == len(found):
            raise errors[-1]
        return any(each is True for each in found)

    def status(self) -> str:
        """`3 nodes, 12 workers, slowest b 0.8/s`."""
        since = time.monotonic() - _LIVE
        while self._answered and self._answered[0][0] < since:
            self._answered.popleft()
        nodes = {worker.node.name for worker in self._ready}
        said = f"{len(nodes)} node{'s' * (len(nodes) != 1)}, {len(self._ready)} worker{'s' * (len(self._ready) != 1)}"
        if len(nodes) > 1 and self._answered:
            paces = Counter(name for _, name in self._answered)
            slowest = min(nodes, key=lambda name: paces[name])
            seconds = min(_LIVE, max(self.progress.seconds, 1.0))
            said += f", slowest {slowest} {paces[slowest] / seconds:.2g} pages/s"
        return said

    async def _ask(self, worker: _Worker, request: Request) -> Output | LoupeError:
        travelling, files, pieces = await asyncio.to_thread(self.packing.pack, request)
        worker.asked[id(request)] = None
        answer = await self._call(worker.actor.ask.remote(travelling, files, *pieces))
        if isinstance(answer, ActorLostError):
            raise answer
        found: Output | LoupeError = answer
        return found

    async def _call(self, reference: Any) -> Any:
        """Return the result of a call; ActorLostError, as a value, where its actor is gone."""
        try:
            return await reference
        except self.ray.exceptions.RayTaskError as error:
            return EngineError(f"the worker failed: {str(error).strip().splitlines()[-1][:300]}")
        except self.ray.exceptions.RayError as error:
            return ActorLostError(str(error).strip().splitlines()[0][:200])

    async def _take(self) -> _Worker:
        """The worker with the fewest requests, once one has room."""
        while True:
            found = min(self._ready, key=lambda worker: worker.load, default=None)
            if found is not None and found.load < self._room:
                found.load += 1
                return found
            if self._over is not None:
                raise self._over
            self._waiting += 1
            async with self._change:
                await self._change.wait()
            self._waiting -= 1

    async def _give_back(self, worker: _Worker) -> None:
        worker.load -= 1
        # Somebody waits only after workers were lost: places are as many as there is room.
        if self._waiting:
            await self._tell()

    async def _tell(self) -> None:
        async with self._change:
            self._change.notify_all()

    async def _retire(self, worker: _Worker) -> bool:
        """No longer use a worker; whether its node is gone."""
        self._ready.pop(worker, None)
        self._resize()
        with suppress(Exception):  # It may be dead already.
            self.ray.kill(worker.actor)
        return not await self._is_alive(worker.node)

    async def _is_alive(self, node: Node) -> bool:
        return node.id in await asyncio.to_thread(self.nodes.look)

    def _resize(self) -> None:
        if isinstance(self.places, AdaptivePlaces):
            self.places.spread(len(self._ready))
        else:
            self.places.resize(len(self._ready) * self._room)

    async def _watch(self) -> None:
        """Start workers wherever some are lacking, as long as the engine is open."""
        while True:
            try:
                nodes = self.nodes.now()
            except EngineUnavailableError as error:
                self._over = error
                await self._tell()
                return
            for node in nodes.values():
                there = self._starting[node.id]
                there += sum(worker.node.id == node.id for worker in (*self._ready, *self._opened))
                for _ in range(max(0, self._wanted(node) - there)):
                    self._starting[node.id] += 1
                    self._spawn(self._start(node))
            await self._choose()
            if not self._ready and not +self._starting:
                self._over = self._why_none(list(nodes.values()))
                await self._tell()
            await asyncio.sleep(_LOOK)

    def _wanted(self, node: Node) -> int:
        """Workers that a node is to have: one at first, which says how many the machine bears."""
        if node.id in self._refused:
            return 0
        holds = node.holds(cpus=self.needs.cpus, gpus=self.needs.gpus)
        if node.id not in self._fits:
            return min(1, holds)
        return holds if self.chosen else min(holds, self._fits[node.id])

    def _why_none(self, nodes: list[Node]) -> LoupeError | None:
        """Return the reason why there is no worker and none will be; None while there may be one."""
        refused = {node.name: self._refused[node.id] for node in nodes if node.id in self._refused}
        told = [f"{name}: {error.message}" for name, error in refused.items()]
        able = [node for node in nodes if node.id not in self._refused]
        if any(self._wanted(node) for node in able):
            return None
        need = f"{self.needs.cpus:g} CPUs" + (f" and {self.needs.gpus:g} GPUs" if self.needs.gpus else "")
        told += [f"{node.name}: {node.cpus:g} CPUs, {node.gpus:g} GPUs, and a worker needs {need}" for node in able]
        if not told:
            return None
        kind, hint = EngineUnavailableError, "ray status; --worker cpus=N,gpus=N says what a worker needs"
        if refused and len({error.message for error in refused.values()}) == 1 and not able:
            # All nodes say the same: as on one machine.
            return next(iter(refused.values()))
        return kind(f"no node of the cluster can read: {'; '.join(told)}", hint=hint)

    async def _start(self, node: Node) -> None:
        """Have one more worker on a node, or know why not."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor, kept = None, False
        try:
            actor = self._host.options(
                num_cpus=self.needs.cpus,
                num_gpus=self.needs.gpus,
                max_concurrency=2 * _MOST,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            ).remote()
            opened = await self._call(actor.open.remote(self.order))
            if isinstance(opened, Opened):
                self._fits[node.id] = opened.fits
                self._opened[_Worker(actor, node)] = opened
                kept = True
            elif isinstance(opened, ActorLostError):
                if await self._is_alive(node):
                    died = EngineUnavailableError(f"the engine's worker died while it started: {opened}")
                    await self._note_failure(node, died)
            else:
                await self._refuse(node, opened)
        except Exception as error:  # noqa: BLE001  whatever Ray raises of what it is asked for: nobody else would hear it
            await self._refuse(node, EngineUnavailableError(f"Ray starts no worker: {in_words(error)}"))
        finally:
            self._starting[node.id] -= 1
            if not kept:
                with suppress(Exception):
                    self.ray.kill(actor)
            await self._choose()
            await self._tell()

    async def _choose(self) -> None:
        """Use the workers that opened, once it is known what the engine is: what it was before, else on most nodes."""
        if not self.facts and self._opened:
            self._first_opened = self._first_opened or time.monotonic()
            others = any(ident not in self._fits for ident in +self._starting)
            if others and time.monotonic() < self._first_opened + _VOTING:
                return
            found = list({worker.node.id: opened for worker, opened in self._opened.items()}.values())
            known = [one for one in found if self.known and not _unlike(self.known, one.facts)]
            votes = [sum(not _unlike(one.facts, other.facts) for other in found) for one in found]
            chosen = known[0] if known else found[votes.index(max(votes))]
            self.facts, self.is_watched = chosen.facts, chosen.is_watched
        while self._opened:
            worker, opened = self._opened.popitem()
            if not (differ := _unlike(self.facts, opened.facts)):
                self._ready[worker] = None
                continue
            with suppress(Exception):
                self.ray.kill(worker.actor)
            said = f"its engine differs: {differ}"
            await self._refuse(worker.node, EngineUnavailableError(said, hint="install the same on every node"))
        self._resize()

    async def _note_failure(self, node: Node, error: LoupeError) -> None:
        self._failed[node.id] += 1
        if self._failed[node.id] >= _FAILED_STARTS:
            await self._refuse(node, error)

    async def _refuse(self, node: Node, error: LoupeError) -> None:
        """Use a node no more, and say so."""
        self._refused[node.id] = error
        self.progress.tell(f"node {node.name} is not used: {error.message}")
        if not self._ready:
            self._over = self._why_none(list(self.nodes.now().values()))

    async def _end(self, actor: Any) -> None:
        with suppress(Exception):
            await asyncio.wait_for(self._call(actor.close.remote()), _CLOSE)
        with suppress(Exception):
            self.ray.kill(actor)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _unlike(facts: Mapping[str, str], other: Mapping[str, str]) -> str:
    """In words, in what the engine of a node differs; "" where it does not."""
    return differing(facts, other, (facts.keys() | other.keys()) - PLACES)


@asynccontextmanager
async def engine_pool(pool: EnginePool) -> AsyncIterator[Engine]:
    """The engine that the workers of a pool are together."""
    try:
        await pool.open()
        yield Engine(
            predict=pool.predict,
            facts=pool.facts,
            healthy=pool.healthy if pool.is_watched else None,
            status=pool.status,
            places=pool.places,
        )
    finally:
        await pool.close()
