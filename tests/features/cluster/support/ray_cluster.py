"""A real Ray cluster of several nodes on this machine: real processes, which can be killed while work goes on.

The cluster lives in a process of its own, as the one of a team would: `RayCluster` starts it, and tells it what to do.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

#: Nodes of these clusters are known to be dead within two seconds; Ray's own default is fifteen.
_SYSTEM = {"health_check_period_ms": 500, "health_check_failure_threshold": 3, "health_check_timeout_ms": 10000}
_STORE = 100_000_000
#: Failed starts of a node that are overlooked.
_ATTEMPTS = 3


class RayCluster:
    """A head without CPUs, and nodes with `cpus` each (Ray takes our word for them). A context manager.

    `environment` is what commands need to find it; `nodes` are the process ids of the living nodes, oldest first.
    """

    def __init__(self, *, nodes: int, cpus: int) -> None:
        self._count, self._cpus = nodes, cpus
        self.nodes: list[int] = []

    def __enter__(self) -> RayCluster:
        keys = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "RAY_USAGE_STATS_ENABLED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.features.cluster.support.ray_cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **keys},
            start_new_session=True,
        )
        self.environment = {**keys, "RAY_ADDRESS": self._tell("start", 0)}
        for _ in range(self._count):
            self.add()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)

    def add(self) -> None:
        """A node more; it is there when this returns."""
        self.nodes.append(int(self._tell("add", self._cpus)))

    def kill(self, number: int) -> None:
        """Kill a node as a machine that loses its power: the raylet, and with it its workers."""
        self._tell("kill", self.nodes.pop(number))

    def _tell(self, order: str, number: int) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([order, number]) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith("done "):
                return line.removeprefix("done ").strip()
        raise RuntimeError(f"the cluster ended under {order}")


def _patiently(start: Callable[[], Any]) -> Any:
    """What starts a node gives: Ray gives it 30 seconds, and a busy machine may need another attempt."""
    for _ in range(_ATTEMPTS):
        with suppress(Exception):
            return start()
    return start()


def main() -> None:
    """Do what is asked on standard input, line by line; at its end the cluster ends."""
    from ray.cluster_utils import Cluster

    cluster: Any = None
    nodes: dict[int, Any] = {}
    for line in sys.stdin:
        order, number = json.loads(line)
        answer = ""
        if order == "start":
            head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE, "_system_config": _SYSTEM}
            cluster = _patiently(partial(Cluster, initialize_head=True, head_node_args=head))
            answer = cluster.address
        elif order == "add":
            node = _patiently(partial(cluster.add_node, num_cpus=number, object_store_memory=_STORE))
            pid = node.all_processes["raylet"][0].process.pid
            nodes[pid] = node
            answer = str(pid)
        elif order == "kill":
            node = nodes.pop(number)
            os.kill(number, signal.SIGKILL)
            # Whatever else the node had; its workers end with the raylet.
            cluster.remove_node(node, allow_graceful=False)
        print(f"done {answer}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
