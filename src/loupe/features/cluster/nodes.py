"""The nodes of a cluster as they are now: what each has, what it is called, and whether it is still there."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loupe.errors import EngineUnavailableError, in_words

#: Seconds between two looks, each of which costs some ten milliseconds.
_LOOK = 2.0


class LostClusterError(EngineUnavailableError):
    """The cluster as a whole is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One living node: its id in Ray, what people call it, and what it has."""

    id: str
    name: str
    cpus: float
    gpus: float

    def holds(self, *, cpus: float, gpus: float) -> int:
        """Count the workers with these needs that fit on it when it is empty."""
        counts = [int(there / need + 1e-9) for there, need in ((self.cpus, cpus), (self.gpus, gpus)) if need]
        return min(counts, default=0)


class Nodes:
    """Looks at a cluster every other second, in a thread of its own; may be asked by any thread, and never waits."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._found: dict[str, Node] = self.look()
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="loupe-nodes", daemon=True).start()

    def now(self) -> Mapping[str, Node]:
        """The living nodes with at least one CPU, by id, as of a moment ago. A head that only heads is none of them.

        Raises LostClusterError where the cluster does not answer any more.
        """
        if self._over.is_set():
            raise LostClusterError("the Ray cluster does not answer any more", hint="ray status")
        return self._found

    def look(self) -> dict[str, Node]:
        """Look at this moment; blocks. Raises LostClusterError where the cluster does not answer."""
        try:
            rows = [row for row in self._ray.nodes() if row["Alive"] and row["Resources"].get("CPU", 0) > 0]
        except Exception as error:  # noqa: BLE001  whatever Ray raises where its head is gone
            raise LostClusterError(f"the Ray cluster does not answer: {in_words(error)}", hint="ray status") from None
        with self._lock:
            self._found = {row["NodeID"]: self._node(row) for row in rows}
            return self._found

    def called(self, ident: str) -> str:
        """Return the name of a node, also of one that is gone."""
        return self._names.get(ident, ident[:6])

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK):
            try:
                self.look()
            except LostClusterError:
                self._over.set()

    def _node(self, row: Mapping[str, Any]) -> Node:
        ident, has = row["NodeID"], row["Resources"]
        return Node(id=ident, name=self._name(row), cpus=has.get("CPU", 0.0), gpus=has.get("GPU", 0.0))

    def _name(self, row: Mapping[str, Any]) -> str:
        """Its host name; of several on one host, those that came later have the start of their id with it."""
        ident = row["NodeID"]
        if ident not in self._names:
            host = str(row.get("NodeManagerHostname") or row["NodeManagerAddress"])
            taken = host in self._names.values()
            self._names[ident] = f"{host}-{ident[:6]}" if taken else host
        return self._names[ident]
