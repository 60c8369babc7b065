"""Reading other people's pages and data files in a process with limits: the side of the one who asks.

`ask` does a task of `loupe.data.tasks` in this process where it has limits of its own, else in a child that is started
with the first task and kept. One that dies, hangs or eats memory costs the page that it was asked about; the next task
gets a fresh one. Nothing that comes back is unpickled. The child ends when this process does, however that goes.
"""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

import loupe.errors
from loupe.data.bounds import SECONDS, TOO_LONG, is_bounded, max_pixels, why_it_ended
from loupe.data.messages import HEAD, frame
from loupe.data.native_values import untagged
from loupe.errors import LoupeError, PageError
from loupe.helpers import environment
from loupe.python_process import python_command
from loupe.typed import msgpack_decoder
from loupe.types import DocumentPage, PackedImage

if TYPE_CHECKING:
    from PIL.Image import Image

#: The child's memory is counted, so nothing may be set aside; and it does one thing at a time.
_SETTINGS: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: Pixels of a picture that travel at a time.
_STRIP_PIXELS: Final = 4_000_000
#: No answer but a picture is larger, in bytes.
_LARGEST_REPLY: Final = 1 << 30

_NO_PROCESS: Final = "no process can be started to read it"


class Order(msgspec.Struct):
    """A task, and the folder that relative paths start from."""

    task: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    folder: str


class Reply(msgspec.Struct):
    """What came of a task: a value, the size of an RGB picture whose pixels follow, or an error with its class."""

    value: Any = None
    size: tuple[int, int] | None = None
    error: str = ""
    kind: str = ""
    hint: str = ""


def ask(task: str, *arguments: Any, **options: Any) -> Any:
    """The value of a task of `loupe.data.tasks`; the first argument is what it reads. Raises what it raises, PageError
    where it takes too much memory or time, or breaks its reader."""
    if is_bounded():
        # What tasks.py reads with asks here in turn (a page in a parquet file), so neither can import the other first.
        from loupe.data.tasks import perform

        return perform(task, arguments, options)
    with _READER.lock:
        return _READER.ask(Order(task, arguments, options, _folder()), name_of(arguments[0]))


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        # Deleted: no relative path leads anywhere.
        return "/"


def name_of(source: object) -> str:
    """How messages call what is read."""
    if isinstance(source, DocumentPage):
        return f"{source.path}: page {source.page}"
    return f"{source.path / source.member}:" if isinstance(source, PackedImage) else f"{source}:"


class _ReaderLostError(Exception):
    """The child ended before it took the task."""


class _Reader:
    """The child, if there is one. Every use holds `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._owner = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def ask(self, order: Order, name: str) -> Any:
        """The answer of the child, or of a second one where the first was dead before it took the task."""
        try:
            return self._ask(order, name)
        except _ReaderLostError:
            pass
        try:
            return self._ask(order, name)
        except _ReaderLostError:
            raise PageError(f"{name} {_NO_PROCESS}", hint="see what is missing: loupe doctor") from None

    def close(self) -> None:
        """End the child and leave nothing behind; one of a process that this was forked from is not ours to end."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        self._process = self._socket = None

    def _ask(self, order: Order, name: str) -> Any:
        try:
            connection = self._opened()
        except OSError as error:
            self.close()
            raise PageError(
                f"{name} {_NO_PROCESS} ({error.strerror})", hint="see what is missing: loupe doctor"
            ) from None
        taken = whole = False
        try:
            deadline = time.monotonic() + SECONDS
            self._send(connection, pickle.dumps(order))
            taken = self._frame(connection, deadline) == b""
            reply = msgpack_decoder(Reply, untagged).decode(self._frame(connection, deadline))
            value = self._picture(connection, reply.size, deadline) if reply.size else reply.value
            whole = True
        except TimeoutError:
            raise PageError(f"{name} {TOO_LONG}") from None
        except (EOFError, OSError):
            if not taken:
                raise _ReaderLostError from None
            raise PageError(f"{name} {self._death()}") from None
        except msgspec.MsgspecError:
            raise PageError(f"{name} breaks its reader") from None
        finally:
            # Nobody waits any more for what it does now.
            if not whole:
                self.close()
        if reply.error:
            raise as_error(reply)
        return value

    def _opened(self) -> socket.socket:
        if self._socket is None or self._owner != os.getpid():
            self.close()
            max_pixels()  # the process would end with what is wrong with the limit, and nobody would hear it
            self._socket, theirs = socket.socketpair()
            self._owner = os.getpid()
            with theirs:
                # In the group of its parent, so that what ends that ends it too.
                self._process = subprocess.Popen(
                    python_command("loupe.data.bounded_child", theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment("loupe") | _SETTINGS,
                    pass_fds=[theirs.fileno()],
                )
        return self._socket

    def _send(self, connection: socket.socket, message: bytes) -> None:
        connection.settimeout(SECONDS)
        connection.sendall(frame(message))

    def _frame(self, connection: socket.socket, deadline: float) -> bytearray:
        (size,) = HEAD.unpack(self._read(connection, HEAD.size, deadline))
        if size > _LARGEST_REPLY:
            raise EOFError
        return self._read(connection, size, deadline)

    def _picture(self, connection: socket.socket, size: tuple[int, int], deadline: float) -> Image:
        from PIL import Image as Pillow

        width, height = size
        if width * height > max_pixels():
            raise EOFError
        picture = Pillow.new("RGB", size)
        for top, rows in strips(size):
            pixels = self._read(connection, 3 * width * rows, deadline)
            picture.paste(Pillow.frombytes("RGB", (width, rows), pixels), (0, top))
        return picture

    def _read(self, connection: socket.socket, size: int, deadline: float) -> bytearray:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            count = connection.recv_into(view[done:])
            if not count:
                raise EOFError
            done += count
        return data

    def _death(self) -> str:
        assert self._process is not None
        try:
            return why_it_ended(self._process.wait(timeout=2))
        except subprocess.TimeoutExpired:
            return "breaks its reader"


def strips(size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The parts in which a picture travels, so that it is never there twice: where each starts, and its rows."""
    rows = max(1, _STRIP_PIXELS // max(1, size[0]))
    return ((top, min(rows, size[1] - top)) for top in range(0, size[1], rows))


def as_error(reply: Reply) -> LoupeError:
    """The error that was raised in the child: one of Loupe's as itself, any other as PageError."""
    kind = getattr(loupe.errors, reply.kind, None)
    known = kind if isinstance(kind, type) and issubclass(kind, LoupeError) else PageError
    return known(reply.error, hint=reply.hint)


_READER = _Reader()
atexit.register(_READER.close)
if hasattr(os, "register_at_fork"):
    # A child that was forked while another thread was asking would wait for that thread for ever.
    os.register_at_fork(after_in_child=lambda: setattr(_READER, "lock", threading.RLock()))
