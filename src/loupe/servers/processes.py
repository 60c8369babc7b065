"""The processes of this machine: who descends from whom, and whether a number still means the same process.

A number is given to another process one day, so a process is always its number together with when it began. Linux tells
through /proc, other systems through `ps`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
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
        """What identifies it: its number alone is given away again one day."""
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
    """What changes when the machine starts anew: times of processes count from then. "" where it cannot be known.

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
    """Whether the process got the mark; programs that rename themselves may have overwritten it."""
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
