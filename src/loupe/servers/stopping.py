"""Ending a server with everything that it started: politely, then by force, and nobody is left.

Source: docs/protocols/engines.md#server-stop. Never by name: only processes that are known by number and time of birth,
that descend from these, share their session or carry the server's mark.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from loupe.servers.processes import Process, family

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
