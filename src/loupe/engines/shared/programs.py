"""Running another program on one page: no shell, bounded output, and a time limit that ends all its processes."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError

#: More output than this, in bytes, is an error: no page holds it.
OUTPUT_LIMIT = 64 << 20
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. `complaint` is the end of what it wrote to standard error, on one line."""

    code: int
    output: bytes
    complaint: str


async def run_program(
    arguments: Sequence[str], *, timeout: float, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a program to its end and collect its standard output.

    Raises EngineTimeoutError after `timeout` seconds, EngineError for more than 64 MB of output, and
    EngineUnavailableError if the program cannot be started. However this ends, no process of it is left.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            # Between fork and exec only one system call happens, so that other threads' locks do not matter.
            preexec_fn=_die_with_parent if _PRCTL is not None else None,
        )
    except (OSError, ValueError) as error:
        raise EngineUnavailableError(f"{arguments[0]} cannot be started: {error}") from None
    try:
        async with asyncio.timeout(timeout):
            output, complaint = await asyncio.gather(_read(process, 1, OUTPUT_LIMIT), _read(process, 2, None))
            code = await process.wait()
    except TimeoutError:
        raise EngineTimeoutError(f"no answer within {timeout:g} s") from None
    finally:
        await _end(process)
    return Finished(code, output, " ".join(complaint.decode(errors="replace").split())[-200:])


async def _read(process: Process, stream: int, limit: int | None) -> bytes:
    """Everything from standard output (1) or the end of standard error (2)."""
    reader = process.stdout if stream == 1 else process.stderr
    assert reader is not None
    collected = bytearray()
    while chunk := await reader.read(1 << 16):
        collected += chunk
        if limit is None:
            del collected[:-2000]
        elif len(collected) > limit:
            raise EngineError(f"more than {limit >> 20} MB of output")
    return bytes(collected)


async def _end(process: Process) -> None:
    """Kill what is left of the program's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _die_with_parent() -> None:
    """Ask Linux for a kill when the parent dies, so that `kill -9` of Loupe leaves no program behind."""
    if _PRCTL is not None:
        _PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
