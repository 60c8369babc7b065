"""Programs that read what a model wrote, run with limits: CPU time, memory, size of files, a group of processes.

Limits are in CPU time, never on the clock, so that a busy machine changes no score. What the clock or somebody else
ends says nothing of the formula: that is `killed`, which is never a score.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

Ending = Literal["", "too slow", "too much output", "killed", "crashed"]

_MEMORY_KIB: Final = 3 << 20
_OUTPUT_BLOCKS: Final = 64 << 11  # of 512 bytes
_READ_BYTES: Final = 64 << 20
#: Nobody computes that long within the limits of CPU time; what waits for something is ended.
_WALL_SECONDS: Final = 600
# The hard limit ends with SIGKILL, which anybody can send; the soft one says that it was the time.
_LIMITED: Final = (
    'ulimit -c 0; ulimit -H -t $(($1 + 5)); ulimit -S -t "$1"; ulimit -v "$2" 2>/dev/null; ulimit -f "$3"; '
    'shift 3; exec "$@"'
)


def run_limited(words: Sequence[str], folder: Path, *, seconds: int, environment: Mapping[str, str]) -> Ending:
    """Run a program in this folder, and say how it ended. Raises OSError where no process can be started."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", _LIMITED, "limited", str(seconds), str(_MEMORY_KIB), str(_OUTPUT_BLOCKS), *words],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(_WALL_SECONDS)
    except subprocess.TimeoutExpired:
        code = -signal.SIGKILL
    finally:
        # Also what it may have started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _ended(code)


def _ended(code: int) -> Ending:
    """What the exit code says, if the program did not end by itself. The shell reports signals as 128 and more."""
    number = -code if code < 0 else code - 128
    if number == signal.SIGXCPU:
        return "too slow"
    if number == signal.SIGKILL:
        return "killed"
    if number == signal.SIGXFSZ:
        return "too much output"
    return "crashed" if number > 0 else ""


def read_bounded(path: Path) -> bytes:
    """A file that such a program has written, if it is there, is a file, and is of bounded size."""
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_READ_BYTES)
