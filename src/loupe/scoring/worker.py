"""The parent's side of one scoring process: start it, hand it samples, wait for scores no longer than allowed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from loupe.data.python_process import python_command
from loupe.engines.shared.child_environment import without_secrets
from loupe.scoring.child import HEAD, Prepared, Ready, Reply, Start, frame
from loupe.typed import msgpack_decoder

#: Seconds between two looks at the pool while waiting for a score.
TICK = 0.25
#: One thread per process: the processes themselves take all cores.
_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Message = TypeVar("Message", bound=msgspec.Struct)


class WorkerLostError(Exception):
    """A worker gave no answer: it hung, died, or could not start. Never leaves the pool."""


class WorkerHungError(WorkerLostError):
    """A worker gave no answer in time."""


class Worker:
    """One scoring process. Used by one thread; only `kill` may be called from another."""

    def __init__(self) -> None:
        # A process group of its own keeps Ctrl-C on the terminal away from it, also before it can ignore it.
        self._process = subprocess.Popen(
            python_command("loupe.scoring.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**without_secrets(), **_SINGLE},
            process_group=0,
        )
        self._buffer = bytearray()

    def start(self, start: Start, *, timeout: float) -> None:
        """Wait until the worker can score. Raises WorkerLostError, saying why, if it cannot."""
        try:
            self.send([msgspec.msgpack.encode(start)])
            ready = self._message(Ready, timeout, lambda: None)
        except WorkerLostError as error:
            raise WorkerLostError(f"{error} {self._last_words()}".strip()) from None
        if ready.error:
            raise WorkerLostError(ready.error)

    def send(self, messages: Sequence[bytes]) -> None:
        """Hand over samples; if the process is gone, `receive` says so after its last answers."""
        assert self._process.stdin is not None
        data = memoryview(b"".join(map(frame, messages)))
        try:
            while data:
                data = data[self._process.stdin.write(data) :]
        except BrokenPipeError:
            return

    def receive(self, *, timeout: float, tick: Callable[[], None]) -> Reply:
        """The scores of the next sample; `tick` is called now and then. Raises WorkerLostError after `timeout`."""
        return self._message(Reply, timeout, tick)

    def prepared(self, *, timeout: float, tick: Callable[[], None]) -> Prepared:
        """Wait until a batch is prepared. Raises WorkerLostError after `timeout`."""
        return self._message(Prepared, timeout, tick)

    def kill(self) -> None:
        """End the process and all that its scorers have started, now."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and leave nothing behind."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _message(self, kind: type[Message], timeout: float, tick: Callable[[], None]) -> Message:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + timeout
        while (body := self._taken()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerHungError(f"no score within {timeout:g} s")
            if not poll.poll(min(left, TICK) * 1000):
                tick()
                continue
            data = os.read(descriptor, 1 << 18)
            if not data:
                raise WorkerLostError(self._death())
            self._buffer += data
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

    def _death(self) -> str:
        """How the process ended: its output is closed, so its exit code stands, and only its children are left."""
        self.kill()
        code = self._process.wait()
        return f"scorer died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"

    def _last_words(self) -> str:
        """The end of what the worker wrote to standard error while it started."""
        assert self._process.stderr is not None
        self.kill()
        return self._process.stderr.read().decode(errors="replace").strip()[-300:]
