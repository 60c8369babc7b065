"""End a command from outside: Ctrl-C, SIGTERM (batch systems), SIGHUP (a closed terminal). All end it alike.

What was ignored when the command began stays ignored: SIGHUP under `nohup`, Ctrl-C in the background of a script.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from loupe.cli.shared.errors import INTERRUPTED

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: A closed terminal, `timeout` and batch systems send a signal twice; a second one so soon says nothing new.
_ECHO_SECONDS = 1.0


class _Received:
    """The last signal that counted, and when it came."""

    number: int = signal.SIGINT
    at: float = -_ECHO_SECONDS

    def counts(self, number: int) -> bool:
        """Note a signal; False for an echo of the last one. Ctrl-C twice is a person in a hurry."""
        is_echo = number != signal.SIGINT and time.monotonic() - self.at < _ECHO_SECONDS
        self.at = time.monotonic()
        self.number = self.number if is_echo else number
        return not is_echo


_received = _Received()


def heed_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on; until now it ended the process (`loupe.__main__`)."""
    if getattr(signal.getsignal(signal.SIGINT), "__name__", "") == "end_at_interrupt":
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_code(code: int) -> int:
    """130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP: 128 and the number, as shells have it."""
    return 128 + _received.number if code == INTERRUPTED else code


def _heeded() -> list[signal.Signals]:
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def as_interrupts() -> Iterator[None]:
    """In the block SIGTERM and SIGHUP do what Ctrl-C does, so that every `finally` is reached."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not _received.counts(number):
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.number = signal.SIGINT
    before = {number: signal.signal(number, interrupt) for number in _heeded() if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def told(act: Callable[[], None]) -> Iterator[None]:
    """In the block, in a running event loop, each of these signals calls `act` instead."""
    import asyncio  # `loupe --help` has no need of it

    loop = asyncio.get_running_loop()

    def heard(number: int) -> None:
        if _received.counts(number):
            act()

    before = {number: signal.getsignal(number) for number in _heeded()}
    for number in before:
        loop.add_signal_handler(number, heard, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


class _Terminal(io.FileIO):
    """A terminal that may be closed while it is written to: what is said then is lost, and nothing else."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


def outlive_terminal() -> None:
    """Let standard output and error, where they are a terminal, survive its end."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty() and stream is getattr(sys, f"__{name}__"):
            raw = _Terminal(stream.fileno(), "w", closefd=False)
            buffer = io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=True))
