"""The child's side of every worker process: it loads what it serves once, then answers one order after the other.

Each message is its length in eight bytes, then its bytes. The parent sends a `Start`, then orders; the child sends a
`Reply` when it has loaded, then for each order an empty message, which says that it was taken, and its answers. They
travel on a socket, so what is served may print what it likes. A child ends when its socket does: no parent leaves it
behind. Imports little, for every child starts with it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import resource
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from loupe.errors import LoupeError, WriteError, in_words, no_room
from loupe.typed import msgpack_decoder
from loupe.types import Output
from loupe.workers.limits import bound_process, bound_seconds, is_bounded, lower_limit, outlive_signals, too_much_memory

HEAD = struct.Struct("!Q")


class Start(msgspec.Struct):
    """First message to a child: the function `module:function` that loads what it serves, and its keyword arguments.

    A `bounded` child only reads pages: it keeps the limits of `loupe.workers.limits` from the start, and a `timed` one
    computes no longer for an order than they allow. `memory` is another limit, in bytes. A `tied` child is killed when
    the thread of the parent that started it ends: what is stuck in C code would not notice that its parent has left.
    """

    factory: str
    settings: dict[str, Any] = {}
    bounded: bool = False
    timed: bool = False
    memory: int = 0
    tied: bool = True


class Reply(msgspec.Struct):
    """The reply of a worker: facts after loading, an output after a request, or an error.

    `kind` names the class of the error; `number` is its errno, of one that a system refused. `busy`: it may pass.
    """

    output: Output | None = None
    facts: dict[str, str] = {}
    error: str = ""
    kind: str = ""
    hint: str = ""
    number: int | None = None
    busy: bool = False


class Served(Protocol):
    """The result of a factory: facts about itself, and the answers to an order."""

    @property
    def facts(self) -> Mapping[str, str]:
        """The facts that are recorded about it."""

    def answers(self, order: bytes) -> Iterable[bytes | memoryview]:
        """Each answer to an order, as soon as there is one. What is sent raw, without its length, is a memoryview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Served by `loupe.workers.pool`: the function that reads (a text stands for an output), and facts for run.json.

    It gets what the pool was asked: a Request from engines, jobs of their own from others.
    """

    read: Callable[[Any], Output | str]
    facts: Mapping[str, str] = field(default_factory=dict)

    def answers(self, order: bytes) -> Iterable[bytes]:
        """The reply to a request, or the error that reading it raised."""
        try:
            output = self.read(pickle.loads(order))
            # A subclass of str, such as numpy's, cannot be encoded.
            found = Output(text=str.__str__(output)) if isinstance(output, str) else output
            answer = msgspec.msgpack.encode(Reply(output=found))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a worker's border: it is the error of this sample
            answer = msgspec.msgpack.encode(described(error))
        yield answer


def main(descriptor: int) -> None:
    """Load, then answer until the parent closes the connection."""
    outlive_signals()
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # Orders are taken at once, so that the parent never waits on a full line.
    threading.Thread(target=_receive, args=(connection.makefile("rb"), inbox), daemon=True).start()
    start = msgpack_decoder(Start).decode(inbox.get())
    if start.tied and sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if start.bounded:
        bound_process()
    module, _, name = start.factory.partition(":")
    try:
        served: Served = getattr(importlib.import_module(module), name)(**start.settings)
        if start.memory:
            lower_limit(resource.RLIMIT_DATA, start.memory)
        ready = Reply(facts=dict(served.facts))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a worker's border: the parent raises it again
        connection.sendall(frame(msgspec.msgpack.encode(described(error))))
        return
    connection.sendall(frame(msgspec.msgpack.encode(ready)))
    process = os.getpid()
    while True:
        order = inbox.get()
        # Taken: from here on a death is the fault of this order.
        connection.sendall(frame(b""))
        if start.timed:
            bound_seconds()
        for answer in served.answers(order):
            if os.getpid() != process:
                # An engine that forked: only one of the two may answer.
                os._exit(0)
            connection.sendall(answer if isinstance(answer, memoryview) else frame(answer))


def frame(message: bytes) -> bytes:
    """A message as it travels."""
    return HEAD.pack(len(message)) + message


def _receive(stream: BinaryIO, inbox: queue.SimpleQueue[bytes]) -> None:
    """Take messages; when the parent has left, end this process, whatever it is doing."""
    with stream:
        while len(head := stream.read(HEAD.size)) == HEAD.size:
            (size,) = HEAD.unpack(head)
            message = stream.read(size)
            if len(message) < size:
                break
            inbox.put(message)
    os._exit(0)


def described(error: BaseException) -> Reply:
    """An error as it travels."""
    if isinstance(error, MemoryError) and is_bounded():
        return Reply(error=f"the page {too_much_memory()}")
    error = no_room(error) or error
    if isinstance(error, LoupeError):
        number = error.errno if isinstance(error, WriteError) else None
        return Reply(error=_plain(error.message), kind=type(error).__name__, hint=_plain(error.hint), number=number)
    return Reply(error=f"{_place(error)}{_plain(in_words(error))}")


def _place(error: BaseException) -> str:
    """`file.py:7: ` where it was raised: in the user's own code if that took part, else in what Loupe called."""
    import sysconfig
    import traceback

    ours = str(Path(__file__).parents[1])
    installed = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((ours, "<"))
    ]
    own = [frame for frame in frames if not frame.filename.startswith(installed)]
    chosen = (own or frames)[-1:]
    return "".join(f"{Path(frame.filename).name}:{frame.lineno}: " for frame in chosen)


def _plain(message: str) -> str:
    """On one line, and without what cannot be encoded."""
    return " ".join(message.encode(errors="replace").decode().split())[:2000]
