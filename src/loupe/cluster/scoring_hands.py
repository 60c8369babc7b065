"""Scoring processes on the nodes of a cluster, for `ScorePool`: the lines to them, and which node gets the next one."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from loupe.benchmarks.registry import load_benchmark
from loupe.cluster.nodes import LostClusterError, Node, Nodes
from loupe.cluster.sameness import versions
from loupe.cluster.scoring_host import ScoringHost, ScoringOrder, carrying, files_of
from loupe.errors import LoupeError
from loupe.scoring.child import Start
from loupe.scoring.digest import scorer_digest
from loupe.scoring.process import Line, WorkerGoneError, WorkerLostError
from loupe.types import Prediction, Sample

#: Seconds in which an actor must have started, and in which it may clean up.
_START, _END = 120.0, 5.0


class ScoringHands:
    """The machines of a cluster that score one benchmark. `tell` hears of nodes that cannot; `shared`: of pages."""

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
        self._ray = ray
        self._host = ray.remote(ScoringHost)
        self._nodes = nodes
        self._shared = shared
        self._tell = tell
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        found = load_benchmark(benchmark)
        self._order = ScoringOrder(
            benchmark=benchmark,
            adapters=tuple(adapters),
            digest=scorer_digest(found, adapters),
            versions=versions(),
            tools=found.tools() if found.tools else {},
            files=files_of(benchmark),
        )

    def most(self) -> int:
        """One process per core of the nodes that can score."""
        try:
            return sum(int(node.cpus) for node in self._able())
        except LostClusterError:  # `line` says so, to those who wait for scores
            return 0

    def pack(self, sample: Sample, prediction: Prediction, lost: str) -> bytes:
        """One sample as it travels, with its pages where scoring looks at them."""
        if not self._shared:
            with suppress(OSError, LoupeError):  # The scorer says what it misses.
                sample = carrying(sample)
        return pickle.dumps((sample, prediction, lost))

    def line(self) -> Line:
        """A new process on the node that has the fewest for its cores. Raises WorkerLostError where none can be."""
        while True:
            with self._lock:
                able = self._able()
                if not able:
                    told = "; ".join(f"{self._nodes.called(ident)}: {why}" for ident, why in self._refused.items())
                    raise WorkerLostError(f"no node of the cluster can score ({told or 'there is none'})")
                node = min(able, key=lambda each: (self._running[each.id] + 1) / each.cpus)
                self._running[node.id] += 1
            found = self._open(node)
            if isinstance(found, RemoteLine):
                return found
            with self._lock:
                self._running[node.id] -= 1
                known = node.id in self._refused
                self._refused[node.id] = found
            if not known:
                self._tell(f"node {node.name} does not score: {found}")

    def _able(self) -> list[Node]:
        return [node for node in self._nodes.now().values() if node.id not in self._refused]

    def _open(self, node: Node) -> RemoteLine | str:
        """A line to a new process of a node, or why that cannot score. Raises WorkerGoneError where the node goes."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # No CPU of its own: like those of one machine, scorers run beside the engine, and as many as there are cores.
        where = NodeAffinitySchedulingStrategy(node.id, soft=False)
        actor = self._host.options(num_cpus=0, max_restarts=0, scheduling_strategy=where).remote()
        line = RemoteLine(self._ray, actor, lambda: self._left(node))
        try:
            problem, here = line.get(actor.open.remote(self._order), _START)
        except WorkerLostError:
            line.close()
            raise
        if problem:
            line.kill()
            return str(problem)
        line.benchmark = here
        return line

    def _left(self, node: Node) -> None:
        with self._lock:
            self._running[node.id] -= 1


class RemoteLine:
    """The line to a scoring process of a node."""

    def __init__(self, ray: Any, actor: Any, left: Callable[[], None]) -> None:
        self.benchmark = ""
        self._ray = ray
        self._actor = actor
        self._left: Callable[[], None] | None = left

    def settle(self, start: Start) -> Start:
        """The benchmark lies elsewhere there."""
        return msgspec.structs.replace(start, benchmark=self.benchmark)

    def write(self, data: bytes) -> None:
        """Send all of this. Raises WorkerGoneError where the node is gone."""
        self.get(self._actor.write.remote(data))

    def read(self, seconds: float) -> bytes | None:
        """What has come, after at most so many seconds."""
        found: bytes | None = self.get(self._actor.read.remote(seconds))
        return found

    def death(self) -> str:
        """How the process ended."""
        return str(self.get(self._actor.death.remote()))

    def last_words(self) -> str:
        """End the process; the end of what it wrote to standard error."""
        return str(self.get(self._actor.last_words.remote()))

    def kill(self) -> None:
        """End the actor, and the process with it."""
        with suppress(Exception):
            self._ray.kill(self._actor)

    def close(self) -> None:
        """End the actor and leave nothing behind."""
        with suppress(Exception):  # It may be dead already.
            self._ray.get(self._actor.close.remote(), timeout=_END)
        self.kill()
        left, self._left = self._left, None
        if left is not None:
            left()

    def get(self, reference: Any, timeout: float | None = None) -> Any:
        """What a call gives back. Raises WorkerGoneError where its actor is gone or silent."""
        try:
            return self._ray.get(reference, timeout=timeout)
        except self._ray.exceptions.RayTaskError as error:
            raise WorkerLostError(str(error).strip().splitlines()[-1][:300]) from None
        except self._ray.exceptions.RayError as error:
            raise WorkerGoneError(f"its node is gone: {str(error).strip().splitlines()[0][:200]}") from None
