"""Scoring processes on the nodes of a cluster, for `ScorePool`: the lines to them, and which node gets the next one."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from loupe.benchmarks.registry import load_benchmark
from loupe.errors import EngineUnavailableError, LoupeError
from loupe.features.cluster.nodes import LostClusterError, Node, Nodes
from loupe.features.cluster.sameness import versions
from loupe.features.cluster.scoring_host import ScoringHost, ScoringOrder, carrying, files_of
from loupe.scoring.digest import scorer_digest
from loupe.scoring.process import NobodyYetError, WorkerGoneError, WorkerLostError
from loupe.types import Prediction, Sample
from loupe.workers.child import Start

#: Seconds in which an actor must have started, in which it may clean up, and for which one call waits for scores.
_START, _END, _READ = 120.0, 5.0, 30.0
#: Failures after which a node does not score any more; seconds of rest after the first of them (Ray may take fifteen
#: to notice that a machine is dead), and without any after which they are forgotten.
_FAILURES, _REST, _FORGIVEN = 3, 5.0, 60.0


class ScoringHands:
    """The machines of a cluster that score one benchmark. `tell` hears of nodes that cannot; `shared`: of pages.

    A node that fails rests for a while, the longer the more often in a row, and others are asked.
    """

    attempts: float = math.inf
    #: A call to a node costs a millisecond.
    seconds: float = 0.5

    def __init__(
        self,
        ray: Any,
        nodes: Nodes,
        benchmark: str,
        adapters: Sequence[str],
        *,
        shared: bool,
        tell: Callable[[str], None],
    ) -> None:
        self.ray = ray
        self._host = ray.remote(ScoringHost)
        self._nodes = nodes
        self._shared = shared
        self._tell = tell
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._waits = False
        found = load_benchmark(benchmark)
        self._order = ScoringOrder(
            benchmark=benchmark,
            adapters=tuple(adapters),
            digest=scorer_digest(found, adapters),
            versions=versions(),
            tools=found.tools() if found.tools else {},
        )
        # Once into the object store, not once for each process.
        self._files = ray.put(files_of(benchmark))

    def most(self) -> int:
        """One process per core of the nodes that can score."""
        try:
            return sum(int(node.cpus) for node in self._able(self._nodes.now()))
        except LostClusterError:  # `line` says so, to those who wait for scores
            return 0

    def pack(self, sample: Sample, prediction: Prediction, lost: str) -> bytes:
        """One sample as it travels, with its pages where scoring looks at them."""
        if not self._shared:
            with suppress(OSError, LoupeError):  # The scorer says what it misses.
                sample = carrying(sample)
        return pickle.dumps((sample, prediction, lost))

    def line(self) -> RemoteLine:
        """A new process on the node that has the fewest for its cores.

        Raises NobodyYetError where no node can have one just now, LoupeError where none of those that are there can.
        """
        while True:
            known = self._next()
            try:
                actor, problem = self._open(known)
                if not problem:
                    return RemoteLine(self, known, actor)
                self._refuse(known, problem)
            except NobodyYetError:  # It rests since another thread has tried.
                pass
            except WorkerLostError as error:
                self.note(known, str(error))
            self.leave(known)

    def note(self, known: _Known, problem: str) -> None:
        """What became of a start on a node, or what it lacks; "": it can score."""
        with self._lock:
            now = time.monotonic()
            if problem and now >= known.rests_until:  # What comes while it rests is the same trouble.
                known.failures += 1
                known.rests_until = now + _REST * known.failures
            elif not problem:
                self._waits = False
                known.failures = known.failures if now < known.rests_until + _FORGIVEN else 0
        if known.failures >= _FAILURES:
            self._refuse(known, f"{problem}, {_FAILURES} times")

    def leave(self, known: _Known) -> None:
        """A node has one process less."""
        with self._lock:
            known.running -= 1

    def close(self) -> None:
        """End all actors and leave nothing behind."""
        with self._lock:
            actors = [known.actor for known in self._known.values() if known.actor is not None]
        ends = []
        for actor in actors:
            with suppress(Exception):  # It may be dead already.
                ends.append(actor.close.remote())
        with suppress(Exception):
            self.ray.wait(ends, num_returns=len(ends), timeout=_END)
        for actor in actors:
            with suppress(Exception):
                self.ray.kill(actor)

    def _able(self, nodes: Mapping[str, Node]) -> list[Node]:
        return [node for ident, node in nodes.items() if ident not in self._known or not self._known[ident].refused]

    def _next(self) -> _Known:
        """The node to try now; it counts as having one process more."""
        nodes = self._nodes.now()
        able = self._able(nodes)
        if nodes and not able:
            told = "; ".join(f"{node.name}: {self._known[ident].refused}" for ident, node in nodes.items())
            raise EngineUnavailableError(f"no node of the cluster can score ({told})", hint="ray status")
        with self._lock:
            now = time.monotonic()
            known = [self._known.setdefault(node.id, _Known(node)) for node in able]
            rested = [each for each in known if each.rests_until <= now]
            if rested:
                found = min(rested, key=lambda each: (each.running + 1) / each.node.cpus)
                found.running += 1
                return found
            tells, self._waits = not self._waits, True
        if tells:
            self._tell("no node can score just now: waiting for one")
        raise NobodyYetError("no node can score just now")

    def _refuse(self, known: _Known, why: str) -> None:
        with self._lock:
            is_new, known.refused = not known.refused, known.refused or why
        if is_new:
            self._tell(f"node {known.node.name} does not score: {why}")

    def _open(self, known: _Known) -> tuple[Any, str]:
        """The actor of a node, and why that cannot score ("": it can). Raises WorkerLostError where it does not answer.

        Raises NobodyYetError where the node rests.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        with known.opening:
            if known.actor is not None:
                return known.actor, ""
            if known.rests_until > time.monotonic():
                raise NobodyYetError("it has just failed")
            # No CPU of its own: like those of one machine, scorers run beside the engine, one for each core. Each may
            # be waited for, and be killed meanwhile.
            where = NodeAffinitySchedulingStrategy(known.node.id, soft=False)
            threads = 2 * int(known.node.cpus) + 8
            actor = self._host.options(
                num_cpus=0, max_restarts=0, max_concurrency=threads, scheduling_strategy=where
            ).remote()
            problem = "its actor is gone"
            try:
                problem, known.benchmark = answer(self.ray, actor.open.remote(self._order, self._files), _START)
            finally:
                if problem:
                    with suppress(Exception):
                        self.ray.kill(actor)
            known.actor = None if problem else actor
            return actor, str(problem)


@dataclass(slots=True, eq=False)
class _Known:
    """What is known of a node: its actor once it is open, the processes that run there, and how it did.

    `refused` says why it does not score.
    """

    node: Node
    actor: Any = None
    benchmark: str = ""
    running: int = 0
    failures: int = 0
    rests_until: float = 0.0
    refused: str = ""
    opening: threading.Lock = field(default_factory=threading.Lock)


class RemoteLine:
    """The line to a new scoring process of an open node. Raises WorkerLostError where none starts there."""

    def __init__(self, hands: ScoringHands, known: _Known, actor: Any) -> None:
        self._hands, self._ray = hands, hands.ray
        self._known, self._actor = known, actor
        self._open = True
        self._coming: Any = None
        self._number = self._ask(self._actor.start.remote(), _START)

    def note(self, problem: str) -> None:
        """How its start ended, or what its node lacks."""
        self._hands.note(self._known, problem)

    def settle(self, start: Start) -> Start:
        """The benchmark lies elsewhere there."""
        return msgspec.structs.replace(start, settings={**start.settings, "benchmark": self._known.benchmark})

    def write(self, data: bytes) -> None:
        """Send all of this. Raises WorkerGoneError where the node is gone."""
        self._ask(self._actor.write.remote(self._number, data))

    def read(self, seconds: float) -> bytes | None:
        """What has come, after at most so many seconds."""
        # One call waits for long there, and is looked after here, which costs nothing.
        if self._coming is None:
            self._coming = self._actor.read.remote(self._number, _READ)
        ready, _ = self._ray.wait([self._coming], timeout=seconds)
        if not ready:
            return None
        coming, self._coming = self._coming, None
        found: bytes | None = self._ask(coming)
        return found

    def death(self) -> str:
        """How the process ended."""
        return str(self._ask(self._actor.death.remote(self._number)))

    def last_words(self) -> str:
        """End the process; the end of what it wrote."""
        return str(self._ask(self._actor.last_words.remote(self._number)))

    def kill(self) -> None:
        """End the process."""
        with suppress(Exception):
            self._actor.kill.remote(self._number)

    def close(self) -> None:
        """End the process and leave nothing behind."""
        if not self._open:
            return
        self._open = False
        self._hands.leave(self._known)
        with suppress(Exception):  # Its node may be dead already, and takes it away.
            self._actor.end.remote(self._number)

    def _ask(self, reference: Any, timeout: float | None = None) -> Any:
        """What a call gives back. Raises WorkerGoneError where its node is gone or silent, which the node is told."""
        try:
            return answer(self._ray, reference, timeout)
        except WorkerGoneError as error:
            if self._known.actor is self._actor:
                self._known.actor = None
                self.note(str(error))
            raise


def answer(ray: Any, reference: Any, timeout: float | None = None) -> Any:
    """What a call to an actor gives back.

    Raises WorkerLostError with what it raised, WorkerGoneError where it is gone or silent.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except ray.exceptions.RayTaskError as error:
        raise WorkerLostError(str(error).strip().splitlines()[-1][:300]) from None
    except ray.exceptions.RayError as error:
        raise WorkerGoneError(f"its node is gone: {str(error).strip().splitlines()[0][:200]}") from None
