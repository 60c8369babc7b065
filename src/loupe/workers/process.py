"""The parent's side of every worker process: it is started, heard, and ended with whatever it has started."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from loupe.python_process import python_command

#: What a worker prints is kept for error messages, up to this many bytes.
_LOG_LIMIT = 1 << 20


def own_command(descriptor: int) -> list[str]:
    """A child in Loupe's own Python, with this process's search path and nothing from the working folder."""
    return python_command("loupe.workers.child", descriptor)


class Process:
    """A worker process with a `socket` to it. Raises OSError where none can be started.

    `environment` is all that it gets. One with a `group` of its own does not hear Ctrl-C on the terminal, as the parent
    decides, and takes what it has started along; one without ends with the group of its parent, and nobody hears what
    it prints. It starts in `folder`; by default, in the caller's.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        command: Callable[[int], list[str]] = own_command,
        group: bool = True,
        folder: Path | None = None,
    ) -> None:
        self.socket, theirs = socket.socketpair()
        self._group = group
        self._log: IO[bytes] | None = None
        try:
            self._log = _nameless_file() if group else None
            self._process = subprocess.Popen(
                command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=self._log or subprocess.DEVNULL,
                stderr=self._log or subprocess.DEVNULL,
                env=dict(environment),
                cwd=folder,
                pass_fds=[theirs.fileno()],
                process_group=0 if group else None,
            )
        except BaseException:
            self._close_files()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Return whether the process is dead; it is not reaped by this, where the system can tell without."""
        if self._process.returncode is not None:
            return True
        if sys.platform != "linux":
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def exit_code(self, seconds: float) -> int | None:
        """Wait for its end: the exit code, negative for a signal; None if it lives on."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process now, and whatever it started: that may live on where the process itself is dead already."""
        # Until it is reaped, nobody else can get its number.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if self._group else os.kill)(self.pid, signal.SIGKILL)

    def death(self) -> int:
        """End what is left of it, and return the exit code: its own, if it has ended by itself."""
        self.kill()
        return self._process.wait()

    def close(self) -> None:
        """End the process and leave nothing behind."""
        self.death()
        self._close_files()

    def last_words(self) -> str:
        """The end of what the process printed, on one line."""
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        end = os.pread(self._log.fileno(), 1000, max(0, size - 1000))
        return " ".join(end.decode(errors="replace").split())[-300:]

    def trim_log(self) -> None:
        """Forget what it printed, where that is much."""
        if self._log is not None and os.fstat(self._log.fileno()).st_size > _LOG_LIMIT:
            os.ftruncate(self._log.fileno(), 0)

    def _close_files(self) -> None:
        self.socket.close()
        if self._log is not None:
            self._log.close()


def _nameless_file() -> IO[bytes]:
    """A file to append to, in memory where the system can do that, so that it needs no disk.

    Not a pipe: what a worker prints can never block it, and there is nothing to clean up.
    """
    if sys.platform != "linux":
        return tempfile.TemporaryFile(mode="a+b")
    file = os.fdopen(os.memfd_create("loupe-worker"), "w+b", buffering=0)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file
