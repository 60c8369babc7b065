"""The parent's side of one scoring process: start it, hand it samples, wait for scores no longer than allowed."""

from __future__ import annotations

import pickle
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import msgspec

from loupe.helpers import for_children
from loupe.scoring.child import Prepared, Scored, batch
from loupe.typed import msgpack_decoder
from loupe.types import Prediction, Sample
from loupe.workers.child import HEAD, Reply, Start, frame
from loupe.workers.limits import cores, how_it_ended
from loupe.workers.process import Process

#: Seconds between two looks at the pool while waiting for a score.
TICK = 0.25
#: One thread per process: the processes themselves take all cores.
_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Message = TypeVar("Message", bound=msgspec.Struct)


class WorkerLostError(Exception):
    """A worker gave no answer: it hung, died, or could not start. Never leaves the pool."""


class WorkerHungError(WorkerLostError):
    """A worker gave no answer in time."""


class WorkerGoneError(WorkerLostError):
    """A worker went with its machine: whatever it was scoring is not to blame."""


class NobodyYetError(WorkerLostError):
    """No machine can score just now, but one may come."""


class Line(Protocol):
    """A scoring process and the line to it, wherever it runs. `kill` may be called by any thread, the rest by one."""

    def note(self, problem: str) -> None:
        """Note how its start ended ("": it can score), or what its machine lacks, by which it may be judged."""

    def settle(self, start: Start) -> Start:
        """Settle what to score with, as it is called where the process runs."""

    def write(self, data: bytes) -> None:
        """Send all of this; if the process is gone, `read` says so after its last answers."""

    def read(self, seconds: float) -> bytes | None:
        """Return what has come, after at most so many seconds; None if nothing has, b"" at the end of the line."""

    def death(self) -> str:
        """Return how the process ended, after the end of the line."""

    def last_words(self) -> str:
        """End the process; the end of what it wrote while it started."""

    def kill(self) -> None:
        """End the process and all that its scorers have started, now."""

    def close(self) -> None:
        """End the process and leave nothing behind."""


class Hands(Protocol):
    """The machines that score.

    `attempts`: failed starts in a row after which none will succeed; infinite where `line` says so itself. `seconds`:
    how long a batch should take, so that handing it over costs little beside it.
    """

    attempts: float
    seconds: float

    def line(self) -> Line:
        """A new process. Raises OSError or WorkerLostError where none starts now, LoupeError where none ever will.

        NobodyYetError where there is no machine to try just now.
        """

    def most(self) -> int:
        """The number of processes that there may be just now."""

    def pack(self, sample: Sample, prediction: Prediction, lost: str) -> bytes:
        """One sample as it travels; `lost` says how it has cost a worker before. Raises what pickling raises."""

    def close(self) -> None:
        """Nothing more is scored: leave nothing behind."""


class Here:
    """This machine alone: one process per core."""

    attempts: float = 3
    seconds: float = 0.05

    def line(self) -> Line:
        """A new process. Raises OSError where none can be started."""
        return LocalLine()

    def most(self) -> int:
        """Cores that this process may use."""
        return cores()

    def pack(self, sample: Sample, prediction: Prediction, lost: str) -> bytes:
        """One sample as it travels."""
        return pickle.dumps((sample, prediction, lost))

    def close(self) -> None:
        """Every process was closed."""


class LocalLine:
    """A scoring process of this machine; `temporary` is its folder for temporary files, if not the usual one."""

    def __init__(self, temporary: str = "") -> None:
        self._process = Process(for_children() | _SINGLE | ({"TMPDIR": temporary} if temporary else {}))
        self.kill, self.close = self._process.kill, self._process.close
        self._poll = select.poll()
        self._poll.register(self._process.socket, select.POLLIN)

    def note(self, problem: str) -> None:
        """There is no other machine, so this one is not judged."""

    def settle(self, start: Start) -> Start:
        """Everything is called here as it is called by those who ask."""
        return start

    def write(self, data: bytes) -> None:
        """Send all of this; if the process is gone, `read` says so after its last answers."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.socket.sendall(data)

    def read(self, seconds: float) -> bytes | None:
        """Return what has come, after at most so many seconds; None if nothing has, b"" at the end of the line."""
        if not self._poll.poll(seconds * 1000):
            return None
        try:
            return self._process.socket.recv(1 << 18)
        except ConnectionResetError:
            return b""

    def death(self) -> str:
        """Kill what is left, and return how the process ended: its line is closed, so its exit code is final."""
        return f"scorer died ({how_it_ended(self._process.death())})"

    def last_words(self) -> str:
        """End the process; the end of what it wrote while it started."""
        self._process.death()
        return self._process.last_words()


class Worker:
    """Speaks with one scoring process. Used by one thread; only `kill` may be called from another."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._buffer = bytearray()
        self.note, self.kill, self.close = line.note, line.kill, line.close

    def start(self, start: Start, *, timeout: float) -> None:
        """Wait until the worker can score. Raises WorkerLostError, saying why, if it cannot."""
        try:
            self._line.write(frame(msgspec.msgpack.encode(self._line.settle(start))))
            ready = self._message(Reply, timeout, lambda: None)
        except WorkerGoneError:
            raise
        except WorkerLostError as error:
            raise WorkerLostError(f"{error} {self._line.last_words()}".strip()) from None
        if ready.error:
            raise WorkerLostError(": ".join(filter(None, (ready.kind, ready.error))))
        self.note("")

    def send(self, messages: Sequence[bytes]) -> None:
        """Hand over a batch; if the process is gone, `receive` says so after its last answers."""
        self._line.write(frame(batch(messages)))

    def receive(self, *, timeout: float, tick: Callable[[], None]) -> Scored:
        """The scores of the next sample; `tick` is called now and then. Raises WorkerLostError after `timeout`."""
        return self._message(Scored, timeout, tick)

    def prepared(self, *, timeout: float, tick: Callable[[], None]) -> Prepared:
        """Wait until a batch is prepared. Raises WorkerLostError after `timeout`."""
        return self._message(Prepared, timeout, tick)

    def _message(self, kind: type[Message], timeout: float, tick: Callable[[], None]) -> Message:
        deadline = time.monotonic() + timeout
        while not (body := self._taken()):
            if body is not None:  # an empty one says that the batch was taken; the next may be there already
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerHungError(f"no score within {timeout:g} s")
            data = self._line.read(min(left, TICK))
            if data is None:
                tick()
            elif data:
                self._buffer += data
            else:
                raise WorkerLostError(self._line.death())
        try:
            return msgpack_decoder(kind).decode(body)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise WorkerLostError(f"scorer's answer is no score: {error}") from None

    def _taken(self) -> bytes | None:
        """The next whole message that has arrived, if any."""
        if len(self._buffer) < HEAD.size:
            return None
        (size,) = HEAD.unpack_from(self._buffer)
        end = HEAD.size + int(size)
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[HEAD.size : end])
        del self._buffer[:end]
        return body
