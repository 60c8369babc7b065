"""The worker's side of `isolation.py`: loads an engine once, then answers one request after the other.

It reads from a socket, so the engine may print what it likes. It ends when the socket does: no parent leaves it behind.
"""

from __future__ import annotations

import importlib
import os
import pickle
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from loupe.data.bounds import bound_process, is_bounded, outlive_signals, too_much_memory
from loupe.data.messages import die_with_parent, frame, inbox_of
from loupe.errors import LoupeError, WriteError, in_words, no_room
from loupe.typed import msgpack_decoder
from loupe.types import Output


class Start(msgspec.Struct):
    """First message to a worker: the function `module:function` that loads the engine, and its keyword arguments.

    A `bounded` worker only reads pages: it keeps the limits of `loupe.data.bounds` from the start.
    """

    factory: str
    settings: dict[str, Any]
    bounded: bool = False


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of a factory: the function that reads (a text stands for an output), and facts for run.json.

    It gets what the pool was asked: a Request from engines, jobs of their own from others.
    """

    read: Callable[[Any], Output | str]
    facts: Mapping[str, str] = field(default_factory=dict)


def main(descriptor: int) -> None:
    """Load, then answer until the parent closes the connection."""
    outlive_signals()
    die_with_parent()
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    inbox = inbox_of(connection.makefile("rb"))
    start = msgpack_decoder(Start).decode(inbox.get())
    if start.bounded:
        bound_process()
    loaded = _load(start)
    if isinstance(loaded, Reply):
        connection.sendall(frame(msgspec.msgpack.encode(loaded)))
        return
    connection.sendall(frame(msgspec.msgpack.encode(Reply(facts=dict(loaded.facts)))))
    process = os.getpid()
    while True:
        request = pickle.loads(inbox.get())
        # Taken: from here on a death is the fault of this page.
        connection.sendall(frame(b""))
        answer = _answer(loaded, request)
        if os.getpid() != process:
            # An engine that forked: only one of the two may answer.
            os._exit(0)
        connection.sendall(frame(answer))


def _load(start: Start) -> Loaded | Reply:
    module, _, name = start.factory.partition(":")
    try:
        loaded: Loaded = getattr(importlib.import_module(module), name)(**start.settings)
        return loaded
    except (Exception, SystemExit) as error:  # noqa: BLE001  a worker's border: the parent raises it again
        return _describe(error)


def _answer(loaded: Loaded, request: object) -> bytes:
    try:
        output = loaded.read(request)
        # A subclass of str, such as numpy's, cannot be encoded.
        found = Output(text=str.__str__(output)) if isinstance(output, str) else output
        return msgspec.msgpack.encode(Reply(output=found))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a worker's border: it is the error of this sample
        return msgspec.msgpack.encode(_describe(error))


def _describe(error: BaseException) -> Reply:
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

    ours = str(Path(__file__).parents[2])
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
