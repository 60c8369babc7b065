"""The processes of a server: found, watched with patience, and ended politely, then by force; nobody is left.

Source: docs/protocols/engines.md#server-stop. Never by name: only processes that are known by number and time of birth,
that descend from these, share their session or carry the server's mark. A number is given to another process one day,
so a process is always its number together with when it began. Linux tells through /proc, other systems through `ps`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loupe.helpers import said_by

#: A mark in the environment of a server: whatever it starts inherits it, wherever it goes.
MARK = "LOUPE_SERVER"
_DEAD = "ZX"


class Process(NamedTuple):
    """One living process; `began` is when it started, in a form that only serves to compare."""

    pid: int
    began: str
    parent: int = 0
    group: int = 0
    session: int = 0

    @property
    def key(self) -> tuple[int, str]:
        """The identity of the process: its number alone is given away again one day."""
        return self.pid, self.began


def living() -> dict[int, Process]:
    """Every living process by its number; what is dead and only waits to be reaped is left out."""
    if sys.platform != "linux":
        return _from_ps()
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {process.pid: process for pid in numbers if (process := _from_proc(pid)) is not None}


def find(pid: int) -> Process | None:
    """The living process of this number."""
    return _from_proc(pid) if sys.platform == "linux" else _from_ps().get(pid)


def boot() -> str:
    """A mark that changes when the machine starts anew: times of processes count from then. "" if it is not known.

    Nobody elsewhere can guess it, so a `server.json` that was made on another machine is never taken for ours.
    """
    with suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "linux":
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return said_by(["sysctl", "-n", "kern.boottime"], seconds=20).stdout.strip()
    return ""


def family(roots: Iterable[tuple[int, str]], mark: str) -> dict[int, Process]:
    """The processes `roots` (pid, began) that still live, and theirs, even if the parents have died.

    Theirs are those that descend from them, share their session, or carry the mark. This process is never among them.
    """
    everyone = living()
    # No server has the numbers 0 and 1, and whoever shares a session with these is none of ours.
    known = {pid: began for pid, began in roots if pid > 1}
    found = {pid for pid, began in known.items() if pid in everyone and everyone[pid].began == began}
    # The number of a session is not given away while anybody is in it.
    sessions = {pid for pid in known if pid not in everyone or pid in found}
    found |= {process.pid for process in everyone.values() if process.session in sessions or _carries(process, mark)}
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = list(found)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    return {pid: everyone[pid] for pid in found - {os.getpid()}}


def _carries(process: Process, mark: str) -> bool:
    """True if the process got the mark; programs that rename themselves may have overwritten it."""
    try:
        return f"{MARK}={mark}\0".encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return False


def _from_proc(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (OSError, ValueError):
        return None
    # The name stands in brackets and may hold anything.
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in _DEAD:
        return None
    return Process(pid, fields[19], int(fields[1]), int(fields[2]), int(fields[3]))


def _from_ps() -> dict[int, Process]:
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    lines = said_by(command, seconds=20).stdout.splitlines()
    rows = [line.split(None, 4) for line in lines]
    return {
        int(pid): Process(int(pid), began.strip(), int(parent), int(group), int(group))
        for pid, parent, group, state, began in (row for row in rows if len(row) == 5)
        if state[0] not in _DEAD
    }


def still_held(pids: Iterable[int]) -> set[int]:
    """Those of the processes that `nvidia-smi` lists; none if there is no such program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return set()
    command = [program, "--query-compute-apps=pid", "--format=csv,noheader"]
    try:
        listed = said_by(command, seconds=10).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return {int(word) for word in listed if word.isdigit()} & set(pids)


_TICK = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPatience:
    """Seconds: from SIGTERM to SIGKILL; for those who outlive the server itself; from SIGKILL to giving up."""

    term: float = 30.0
    stragglers: float = 5.0
    kill: float = 10.0


USUAL_STOP = StopPatience()


def stop_processes(
    root: tuple[int, str],
    *,
    known: Iterable[tuple[int, str]] = (),
    mark: str,
    child: subprocess.Popen[bytes] | None = None,
    patience: StopPatience = USUAL_STOP,
    hurry: Callable[[], bool] = lambda: False,
) -> list[int]:
    """End the server `root` (pid, began) and all its processes; returns the numbers of those that could not be ended.

    `known` are processes of it that were seen before. `child`: our handle, which reaps it. Ctrl-C, or `hurry`, skips to
    SIGKILL; KeyboardInterrupt is raised again when all is done.
    """
    watch = _Watch(root, {root, *known}, mark, child)
    interrupted: KeyboardInterrupt | None = None
    try:
        left = watch.look()
        if left and not hurry():
            _signal_group(root[0], left, signal.SIGTERM)
            left = watch.wait(patience.term, hurry, stragglers=patience.stragglers)
    except KeyboardInterrupt as error:
        interrupted = error
        left = watch.look()
    _signal_group(root[0], left, signal.SIGKILL)
    end = time.monotonic() + patience.kill
    while left and time.monotonic() < end:
        # One by one, those too that left the group; what they started meanwhile is found in the next round.
        for process in left.values():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(_TICK)
        left = watch.look()
    if child is not None and root[0] not in left:
        # Dead, but not reaped yet.
        child.wait()
    if interrupted is not None:
        raise interrupted
    return sorted(left)


@dataclass(slots=True)
class _Watch:
    """Looks at the processes of one server, and remembers all that it ever saw."""

    root: tuple[int, str]
    known: set[tuple[int, str]]
    mark: str
    child: subprocess.Popen[bytes] | None

    def look(self) -> Mapping[int, Process]:
        if self.child is not None:
            self.child.poll()
        found = family(self.known, self.mark)
        self.known |= {process.key for process in found.values()}
        return found

    def wait(self, seconds: float, hurry: Callable[[], bool], *, stragglers: float) -> Mapping[int, Process]:
        """Until all have ended, at most `seconds`; once the server itself has, the others get `stragglers`."""
        end = time.monotonic() + seconds
        server_lives = True
        while (left := self.look()) and time.monotonic() < end and not hurry():
            if server_lives and self.root[0] not in left:
                server_lives = False
                end = min(end, time.monotonic() + stragglers)
            time.sleep(_TICK)
        return left


def _signal_group(group: int, left: Mapping[int, Process], number: signal.Signals) -> None:
    """To the group while one of ours is in it: only then is its number still ours."""
    if any(process.group == group for process in left.values()):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds; `backoff` holds the wait before each restart of one benchmark.

    Protocol: docs/protocols/engines.md#server-start to #server-stop.
    """

    poll: float = 1.0
    warm_up: float = 600.0
    shallow: float = 5.0
    deep: float = 60.0
    backoff: tuple[float, ...] = (5.0, 15.0, 45.0)
    #: Until the port is free again, and the GPU memory of what was killed.
    release: float = 60.0
    stop: StopPatience = USUAL_STOP


USUAL = Patience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The person at the terminal: gets a note, wants to stop (Ctrl-C once), or to stop now (twice)."""

    say: Callable[[str], None] = lambda _: None
    stopping: Callable[[], bool] = lambda: False
    hurry: Callable[[], bool] = lambda: False


NOBODY = Watch()
