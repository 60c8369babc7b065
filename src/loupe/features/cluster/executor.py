"""A cluster in use by one command: the one place where work for other machines begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from loupe.engines.chat.settings import Settings as ChatSettings
from loupe.engines.registry import Profile, WorkerNeeds
from loupe.errors import UsageError
from loupe.features.cluster.connection import check_address, connect
from loupe.features.cluster.engine_host import Order, code_of
from loupe.features.cluster.engine_pool import EnginePool, engine_pool
from loupe.features.cluster.nodes import Nodes
from loupe.features.cluster.pages import Packing
from loupe.features.cluster.sameness import versions
from loupe.features.cluster.scoring_hands import ScoringHands
from loupe.inference.progress import Progress
from loupe.scoring.process import Hands
from loupe.types import Engine


class Cluster:
    """Nodes of Ray, connected. `shared_data`: every node sees the data under the same paths, so pages are not sent.

    `passed` names the variables that a cluster started here gets beside the usual ones.
    """

    def __init__(self, address: str, *, shared_data: bool = False, passed: Collection[str] = ()) -> None:
        self.ray, self.is_started_here = connect(address, passed)
        self.nodes = Nodes(self.ray)
        self._shared = shared_data
        self.tell: Callable[[str], None] = lambda _: None

    def reads(self, profile: Profile) -> bool:
        """True if an engine runs on the nodes; the others ask a server, from this process."""
        return runs_on_nodes(profile)

    @asynccontextmanager
    async def open_profile(
        self, profile: Profile, progress: Progress, known: Mapping[str, str] | None = None
    ) -> AsyncIterator[Engine]:
        """Open an engine on all nodes; `known` are its facts in the run so far. Raises what opening it raises."""
        order = Order(
            profile=_by_the_node(profile),
            versions=versions(),
            cores=max(1, int(self._needs(profile).cpus)),
            code=code_of(profile),
        )
        pool = EnginePool(
            ray=self.ray,
            nodes=self.nodes,
            order=order,
            needs=self._needs(profile),
            chosen=profile.worker is not None or self._needs(profile).gpus > 0,
            packing=Packing(self.ray, shared=self._shared),
            progress=progress,
            known=known or {},
        )
        async with engine_pool(pool) as engine:
            yield engine

    def hands(self, benchmark: str, adapters: Sequence[str]) -> Hands:
        """The nodes as scorers of a benchmark."""
        return ScoringHands(
            self.ray, self.nodes, benchmark, adapters, shared=self._shared, tell=lambda line: self.tell(line)
        )

    def called(self) -> str:
        """Describe it for people: `3 nodes with 12 CPUs and 2 GPUs`."""
        nodes = list(self.nodes.now().values())
        gpus = sum(node.gpus for node in nodes)
        cpus = sum(node.cpus for node in nodes)
        has = f"{cpus:g} CPU{'s' * (cpus != 1)}" + (f" and {gpus:g} GPU{'s' * (gpus != 1)}" if gpus else "")
        return f"{len(nodes)} node{'s' * (len(nodes) != 1)} with {has}"

    def _needs(self, profile: Profile) -> WorkerNeeds:
        """Return what one worker needs: as was said, else a CPU; a server a GPU where the cluster has any."""
        if profile.worker is not None:
            return profile.worker
        serves = isinstance(profile, ChatSettings)
        has_gpus = any(node.gpus for node in self.nodes.now().values())
        return WorkerNeeds(gpus=1.0 if serves and has_gpus else 0.0)


def open_cluster(
    on: str, shared_data: bool, profiles: Sequence[tuple[str, Profile]], say: Callable[[str], None]
) -> Cluster:
    """Connect to the cluster that `--on` names. Raises UsageError for settings that do not go with it."""
    check_address(on)
    for _, profile in profiles:
        check_profile(profile)
    for label in dict.fromkeys(label for label, profile in profiles if not runs_on_nodes(profile)):
        say(f"{label} is asked from this machine: a client needs no cluster; scoring runs there")
    passed = {name for _, profile in profiles for name in getattr(profile, "pass_env", ())}
    cluster = Cluster(on, shared_data=shared_data, passed=passed)
    where = "no Ray cluster is running: started one on this machine" if cluster.is_started_here else "Ray cluster"
    say(f"{where}: {cluster.called()}")
    return cluster


def runs_on_nodes(profile: Profile) -> bool:
    """True if an engine runs on the nodes. A client of a server that stands somewhere needs no cluster.

    Nor do its keys go there, and a service that allows so many requests a second is asked from one place.
    """
    if isinstance(profile, ChatSettings):
        return bool(profile.serve)
    return profile.kind not in ("predictions", "http") and not profile.services


def check_profile(profile: Profile) -> None:
    """Raise UsageError for settings that only make sense on one machine."""
    if getattr(profile, "gpus", ""):
        raise UsageError("--gpus does not go with --on: Ray hands out the GPUs", hint="use --worker gpus=N")
    if isinstance(profile, ChatSettings) and isinstance(profile.server_port, int):
        raise UsageError("--server-port N does not go with --on: several servers share a node", hint="leave it out")


def _by_the_node(profile: Profile) -> Profile:
    """The profile without a number of processes that only counts this machine's cores: each node counts its own."""
    if isinstance(profile, ChatSettings):
        return profile
    [field] = [each for each in msgspec.structs.fields(type(profile)) if each.name == "concurrency"]
    usual: Any = field.default_factory
    is_usual = usual is not msgspec.NODEFAULT and profile.concurrency == usual()
    return msgspec.structs.replace(profile, concurrency=None) if is_usual else profile
