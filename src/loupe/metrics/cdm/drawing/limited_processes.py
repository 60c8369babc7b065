"""Programs that read what a model wrote, run with limits: CPU time, memory, size of files, a group of processes.

Limits are in CPU time, never on the clock, so that a busy machine changes no score. What the clock or somebody else
ends says nothing of the formula: that is `killed`, which is never a score.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

#: How the names of private folders begin. Whoever runs metrics sweeps what killed processes left of them.
TEX, DRIVER = FOLDERS = ("loupe-tex-", "loupe-xdv-")
Ending = Literal["", "too slow", "too much output", "killed", "crashed"]
#: From what a program has said since it was last answered: the answer; "" if it has not asked, None if none is left.
Answers: TypeAlias = Callable[[str], "str | None"]

_MEMORY_KIB: Final = 3 << 20
_OUTPUT_BLOCKS: Final = 64 << 11  # of 512 bytes
_READ_BYTES: Final = 64 * 10**6
_HEARD_BYTES: Final = 64 << 10
#: Seconds without a word until a program is told that nobody will answer.
_PATIENCE: Final = 20
#: Nobody computes that long within the limits of CPU time; what waits for something is ended.
_WALL_SECONDS: Final = 600
# The hard limit ends with SIGKILL, which anybody can send; the soft one says that it was the time.
_LIMITED: Final = (
    'ulimit -c 0; ulimit -H -t $(($1 + 5)); ulimit -S -t "$1"; ulimit -v "$2" 2>/dev/null; ulimit -f "$3"; '
    'shift 3; exec "$@"'
)


def run_limited(
    words: Sequence[str],
    folder: Path,
    *,
    seconds: int,
    environment: Mapping[str, str],
    answers: Answers | None = None,
) -> Ending:
    """Run a program in this folder, and say how it ended. Raises OSError where no process can be started.

    `answers`: what to say to a program that asks on its terminal. Without it, there is none.
    """
    terminal = subprocess.PIPE if answers else subprocess.DEVNULL
    process = subprocess.Popen(
        ["/bin/sh", "-c", _LIMITED, "limited", str(seconds), str(_MEMORY_KIB), str(_OUTPUT_BLOCKS), *words],
        cwd=folder,
        env=dict(environment),
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + _WALL_SECONDS
    try:
        if answers:
            _talk(process, answers, end)
        code = process.wait(max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        code = -signal.SIGKILL
    finally:
        # Also what it may have started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
    return _ended(code)


def _talk(process: subprocess.Popen[bytes], answers: Answers, end: float) -> None:
    """Answer until the program says no more. Raises TimeoutExpired after that moment of the monotonic clock."""
    if process.stdin is None or process.stdout is None:
        return
    said = ""
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < end:
            if not waiting.select(_PATIENCE):
                process.stdin.close()  # It may wait for what nobody will say.
                continue
            read = os.read(process.stdout.fileno(), _HEARD_BYTES)
            if not read:
                return
            said = (said + read.decode("latin-1"))[-_HEARD_BYTES:]
            answer = None if process.stdin.closed else answers(said)
            if answer != "":
                said = ""
                _tell(process.stdin, answer)
    raise subprocess.TimeoutExpired(process.args, _WALL_SECONDS)


def _tell(terminal: IO[bytes], answer: str | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        if answer is None:
            terminal.close()
        else:
            os.write(terminal.fileno(), answer.encode("ascii"))


def _ended(code: int) -> Ending:
    """Return the ending that the exit code shows, if the program did not end by itself. The shell reports signals as
    128 and more.
    """
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


@contextlib.contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """Yield a temporary folder with a lock, by which a later process sees whether this one still needs it."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        new = Path(name) / "in-use.new"
        with new.open("wb") as lock:
            with contextlib.suppress(OSError):  # Not every file system has locks.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(Path(name) / "in-use")
            yield Path(name)
