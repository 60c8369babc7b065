"""What Python a worker runs in, and in which words it is spoken to: Loupe's own, or one that has no Loupe.

Every message travels in a frame of `data.messages`, whatever the words are.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from loupe.engines.workers.worker import Reply, Start
from loupe.python_process import python_command
from loupe.typed import msgpack_decoder


class Interpreter(Protocol):
    """A Python for the workers of a pool. The worker's side of `OwnInterpreter` is `worker.py`."""

    @property
    def bounded(self) -> bool:
        """Whether a worker has limits so narrow that its death may be for want of memory."""

    @property
    def folder(self) -> Path | None:
        """A worker's working folder; None: the caller's."""

    def command(self, descriptor: int) -> list[str]:
        """The command line of a worker that listens on an inherited socket."""

    def greeting(self) -> bytes:
        """The first message: what is to be loaded."""

    def message(self, request: object) -> bytes:
        """A request as it is sent."""

    def reply(self, message: bytes) -> Reply:
        """What came back. Raises msgspec.MsgspecError for anything else."""


@dataclass(frozen=True, slots=True)
class OwnInterpreter:
    """Loupe's own Python, which knows what its classes are."""

    start: Start
    folder: Path | None = None

    @property
    def bounded(self) -> bool:
        """Whether a worker keeps the limits of `loupe.data.bounds`."""
        return self.start.bounded

    def command(self, descriptor: int) -> list[str]:
        """With the same search path as this process, and nothing from the working folder."""
        return python_command("loupe.engines.workers.worker", descriptor)

    def greeting(self) -> bytes:
        """The function that loads the engine."""
        return msgspec.msgpack.encode(self.start)

    def message(self, request: object) -> bytes:
        """Pickled: it goes to a process of ours."""
        return pickle.dumps(request)

    def reply(self, message: bytes) -> Reply:
        """Never unpickled: it comes from an engine."""
        return msgpack_decoder(Reply).decode(message)
