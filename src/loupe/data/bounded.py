"""Reading other people's pages and data files in a process with limits.

`ask` calls a function in this process where it has limits of its own, else in a child that is started with the first
task and kept. One that dies, hangs or eats memory costs the page that it was asked about; the next task gets a fresh
one. Nothing that comes back is unpickled. The child ends when this process does, however that goes.
"""

from __future__ import annotations

import atexit
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

import msgspec

import loupe.errors
from loupe.data.native_values import tagged, untagged
from loupe.errors import LoupeError, PageError
from loupe.helpers import environment
from loupe.typed import msgpack_decoder
from loupe.types import DocumentPage, PackedImage
from loupe.workers.child import HEAD, Reply, Start, frame
from loupe.workers.limits import SECONDS, TOO_LONG, is_bounded, max_pixels, too_much_memory, why_it_ended
from loupe.workers.process import Process

if TYPE_CHECKING:
    from PIL.Image import Image

#: The child's memory is counted, so nothing may be set aside; and it does one thing at a time.
_SETTINGS: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: Pixels of a picture that travel at a time.
_STRIP_PIXELS: Final = 4_000_000
#: No answer but a picture is larger, in bytes.
_LARGEST_REPLY: Final = 1 << 30

_NO_PROCESS: Final = "no process can be started to read it"


Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


class Order(msgspec.Struct):
    """A function, what it is called with, and the folder that relative paths start from."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    folder: str


class Found(msgspec.Struct):
    """The outcome of a task: a value, the size of an RGB picture whose pixels follow, or an error with its class."""

    value: Any = None
    size: tuple[int, int] | None = None
    error: str = ""
    kind: str = ""
    hint: str = ""


def ask(task: Callable[Parameters, Value], *arguments: Parameters.args, **options: Parameters.kwargs) -> Value:
    """Call a function of a module, whose first argument is what it reads, and return its value.

    Raises what it raises, PageError where it takes too much memory or time, or breaks its reader.
    """
    if is_bounded():
        try:
            return task(*arguments, **options)
        except MemoryError:
            raise PageError(f"{name_of(arguments[0])} {too_much_memory()}") from None
    with _READER.lock:
        return cast(Value, _READER.ask(Order(task, arguments, options, _folder()), name_of(arguments[0])))


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        # Deleted: no relative path leads anywhere.
        return "/"


def name_of(source: object) -> str:
    """Return how messages call what is read."""
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
        self._process: Process | None = None
        self._greeting = b""

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
        if self._process is not None and self._owner == os.getpid():
            self._process.close()
        elif self._process is not None:
            self._process.socket.close()
        self._process = None

    def _ask(self, order: Order, name: str) -> Any:
        try:
            process = self._opened()
        except OSError as error:
            self.close()
            raise PageError(
                f"{name} {_NO_PROCESS} ({error.strerror})", hint="see what is missing: loupe doctor"
            ) from None
        taken = whole = False
        try:
            deadline = time.monotonic() + SECONDS
            process.socket.settimeout(SECONDS)
            process.socket.sendall(self._greeting + frame(pickle.dumps(order)))
            if self._greeting and msgpack_decoder(Reply).decode(self._frame(deadline)).error:
                raise EOFError
            self._greeting = b""
            taken = self._frame(deadline) == b""
            found = msgpack_decoder(Found, untagged).decode(self._frame(deadline))
            value = self._picture(found.size, deadline) if found.size else found.value
            whole = True
        except TimeoutError:
            raise PageError(f"{name} {TOO_LONG}") from None
        except (EOFError, OSError):
            if not taken:
                raise _ReaderLostError from None
            code = process.exit_code(2)
            how = "breaks its reader" if code is None else why_it_ended(code)
            raise PageError(f"{name} {how}") from None
        except msgspec.MsgspecError:
            raise PageError(f"{name} breaks its reader") from None
        finally:
            # Nobody waits any more for what it does now.
            if not whole:
                self.close()
        if found.error:
            kind = getattr(loupe.errors, found.kind, None)
            known = kind if isinstance(kind, type) and issubclass(kind, LoupeError) else PageError
            raise known(found.error, hint=found.hint)
        return value

    def _opened(self) -> Process:
        if self._process is None or self._owner != os.getpid():
            self.close()
            max_pixels()  # the process would end with what is wrong with the limit, and nobody would hear it
            # In the group of its parent, so that what ends that ends it too. Any thread of it may ask.
            self._process = Process(environment("loupe") | _SETTINGS, group=False)
            self._owner = os.getpid()
            start = Start(factory=f"{__name__}:Tasks", bounded=True, timed=True, tied=False)
            self._greeting = frame(msgspec.msgpack.encode(start))
        return self._process

    def _frame(self, deadline: float) -> bytearray:
        (size,) = HEAD.unpack(self._read(HEAD.size, deadline))
        if size > _LARGEST_REPLY:
            raise EOFError
        return self._read(size, deadline)

    def _picture(self, size: tuple[int, int], deadline: float) -> Image:
        from PIL import Image as Pillow

        width, height = size
        if width * height > max_pixels():
            raise EOFError
        picture = Pillow.new("RGB", size)
        for top, rows in _strips(size):
            pixels = self._read(3 * width * rows, deadline)
            picture.paste(Pillow.frombytes("RGB", (width, rows), pixels), (0, top))
        return picture

    def _read(self, size: int, deadline: float) -> bytearray:
        assert self._process is not None
        connection = self._process.socket
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            count = connection.recv_into(view[done:])
            if not count:
                raise EOFError
            done += count
        return data


class Tasks:
    """The child's side: it calls what an order names, and answers with its value."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}

    def answers(self, order: bytes) -> Iterator[bytes | memoryview]:
        """The value, or the error; behind the size of a picture its pixels, in strips."""
        from PIL.Image import Image

        name, picture = "the page", None
        try:
            task: Order = pickle.loads(order)
            name = name_of(task.arguments[0])
            _enter(task.folder)
            value = task.task(*task.arguments, **task.options)
            picture = value if isinstance(value, Image) else None
            answer = msgspec.msgpack.encode(Found(size=picture.size) if picture else Found(value=tagged(value)))
        except LoupeError as error:
            answer = _error(error.message, type(error).__name__, error.hint)
        except MemoryError:
            answer = _error(f"{name} {too_much_memory()}")
        except Exception as error:  # noqa: BLE001  a worker's border: it is the error of this page
            answer = _error(f"{name} cannot be read ({type(error).__name__}: {error})")
        yield answer
        if picture is not None:
            for top, rows in _strips(picture.size):
                yield memoryview(picture.crop((0, top, picture.width, top + rows)).tobytes())


def _enter(folder: str) -> None:
    """Go to the parent's folder; where that cannot be entered, no relative path leads anywhere."""
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


def _error(message: str, kind: str = "", hint: str = "") -> bytes:
    """An error as it travels: on one line, and without what cannot be encoded."""
    plain, advice = (" ".join(text.encode(errors="replace").decode().split())[:2000] for text in (message, hint))
    return msgspec.msgpack.encode(Found(error=plain, kind=kind, hint=advice))


def _strips(size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The parts in which a picture travels, so that it is never there twice: where each starts, and its rows."""
    rows = max(1, _STRIP_PIXELS // max(1, size[0]))
    return ((top, min(rows, size[1] - top)) for top in range(0, size[1], rows))


_READER = _Reader()
atexit.register(_READER.close)
if hasattr(os, "register_at_fork"):
    # A child that was forked while another thread was asking would wait for that thread for ever.
    os.register_at_fork(after_in_child=lambda: setattr(_READER, "lock", threading.RLock()))
