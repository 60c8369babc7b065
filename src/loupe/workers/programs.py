"""Running another program on one page: no shell, bounded output, and a time limit that ends all its processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError

#: More output than this, in bytes, is an error: no page holds it.
OUTPUT_LIMIT = 64 * 10**6
#: Asks Linux for a kill when Loupe dies, so that `kill -9` leaves no program behind, then becomes the program. A
#: `preexec_fn` would do it too, but Python code between fork and exec can deadlock in a process with threads.
_LAUNCH = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a program. `complaint` is the end of what it wrote to standard error, on one line."""

    code: int
    output: bytes
    complaint: str

    @property
    def last_output(self) -> str:
        """The end of the output, on one line: some programs complain there."""
        return one_line(self.output)


async def run_program(arguments: Sequence[str], *, timeout: float, environment: Mapping[str, str]) -> Finished:
    """Run a program, given by its absolute path, to its end and collect its standard output.

    `environment` is all that it gets.
    Raises EngineTimeoutError after `timeout` seconds, EngineError for more than 64 MB of output, and
    EngineUnavailableError if the program cannot be started. However this ends, no process of it is left.
    """
    output, complaint = await _Pipe.open(), await _Pipe.open()
    try:
        process = _start(arguments, environment, output, complaint)
        reading = asyncio.create_task(complaint.read_end())
        try:
            async with asyncio.timeout(timeout):
                collected = await output.read_all(OUTPUT_LIMIT)
                said = await reading
                code = await _exit_code(process)
        except TimeoutError:
            raise EngineTimeoutError(f"no answer within {timeout:g} s") from None
        finally:
            reading.cancel()
            _end(process)
    finally:
        output.close()
        complaint.close()
    return Finished(code, collected, one_line(said))


def one_line(data: bytes) -> str:
    """The end of what a program wrote, on one line."""
    return " ".join(data[-2000:].decode(errors="replace").split())[-200:]


def _start(
    arguments: Sequence[str], environment: Mapping[str, str], output: _Pipe, complaint: _Pipe
) -> subprocess.Popen[bytes]:
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid())] if sys.platform == "linux" else []
    try:
        return subprocess.Popen(
            [*launcher, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output.writer,
            stderr=complaint.writer,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise EngineUnavailableError(f"{arguments[0]} cannot be started: {error}") from None
    finally:
        output.close_writer()
        complaint.close_writer()


@dataclass(slots=True)
class _Pipe:
    """A pipe from a program, read by the event loop.

    Not `asyncio.subprocess`: its `wait()` never returns if output was left unread, or if somebody whom the program left
    behind keeps its output open.
    """

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport
    writer: int

    @classmethod
    async def open(cls) -> _Pipe:
        read, write = os.pipe()
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
        )
        return cls(reader, transport, write)

    async def read_all(self, limit: int) -> bytes:
        """Everything to the end. Raises EngineError above `limit` bytes."""
        collected = bytearray()
        while chunk := await self.reader.read(1 << 16):
            collected += chunk
            if len(collected) > limit:
                raise EngineError(f"more than {limit // 10**6} MB of output")
        return bytes(collected)

    async def read_end(self) -> bytes:
        """The last bytes before the end."""
        collected = bytearray()
        while chunk := await self.reader.read(1 << 16):
            collected += chunk
            del collected[:-2000]
        return bytes(collected)

    def close_writer(self) -> None:
        """Close our copy of the program's end."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close(self) -> None:
        self.close_writer()
        self.transport.close()


async def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """The exit code; the output has ended, so it is there at once, or nearly."""
    pause = 0.001
    while (code := process.poll()) is None:
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.05)
    return code


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the program's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
