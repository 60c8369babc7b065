"""How patient to be with a server, and how to tell the person what is going on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loupe.servers.stopping import USUAL_STOP, StopPatience


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
