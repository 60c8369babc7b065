"""The side of `loupe.data.bounded` that reads: a process with limits, which answers one order after the other.

It ends when the connection does: no parent leaves it behind.
"""

from __future__ import annotations

import os
import pickle
import socket

import msgspec

from loupe.data.bounded import Order, Reply, name_of, strips
from loupe.data.bounds import bound_process, bound_seconds, outlive_signals, too_much_memory
from loupe.data.messages import frame, inbox_of
from loupe.data.native_values import tagged
from loupe.data.tasks import perform
from loupe.errors import LoupeError


def main(descriptor: int) -> None:
    """Answer until the parent closes the connection."""
    outlive_signals()
    os.set_inheritable(descriptor, False)
    bound_process()
    connection = socket.socket(fileno=descriptor)
    inbox = inbox_of(connection.makefile("rb"))
    while True:
        order: Order = pickle.loads(inbox.get())
        # Taken: from here on a death is the fault of this page.
        connection.sendall(frame(b""))
        bound_seconds()
        _enter(order.folder)
        _answer(connection, order)


def _enter(folder: str) -> None:
    """Go to the parent's folder; where that cannot be entered, no relative path leads anywhere."""
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


def _answer(connection: socket.socket, order: Order) -> None:
    from PIL.Image import Image

    try:
        found = perform(order.task, order.arguments, order.options)
        picture = found if isinstance(found, Image) else None
        reply = Reply(size=picture.size) if picture else Reply(value=tagged(found))
        message = msgspec.msgpack.encode(reply)
    except LoupeError as error:
        picture = None
        message = _error(error.message, type(error).__name__, error.hint)
    except MemoryError:
        picture = None
        message = _error(f"{name_of(order.arguments[0])} {too_much_memory()}", "", "")
    except Exception as error:  # noqa: BLE001  a worker's border: it is the error of this page
        picture = None
        message = _error(f"{name_of(order.arguments[0])} cannot be read ({type(error).__name__}: {error})", "", "")
    connection.sendall(frame(message))
    if picture is not None:
        for top, rows in strips(picture.size):
            connection.sendall(picture.crop((0, top, picture.width, top + rows)).tobytes())


def _error(message: str, kind: str, hint: str) -> bytes:
    """An error as it travels: on one line, and without what cannot be encoded."""
    plain, advice = (" ".join(text.encode(errors="replace").decode().split())[:2000] for text in (message, hint))
    return msgspec.msgpack.encode(Reply(error=plain, kind=kind, hint=advice))
