"""Ports on this machine: whether one is free, a free one, and who listens on one that is not.

Source: docs/protocols/engines.md#server-start.
"""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
_LISTENS = "0A"
#: Below the ports that Linux, macOS and Windows give to connections.
_OWN_RANGE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as trial:
        # Connections that have just been closed do not keep anybody from listening.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port that nobody uses, by chance.

    Not one that the system gives: it may hand the same to another program, as the end of a connection, before the
    server listens, and large models load for minutes.
    """
    for port in random.SystemRandom().sample(_OWN_RANGE, 50):
        if is_free(port):
            return port
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        given: int = trial.getsockname()[1]
        return given


def is_refused(port: int, *, seconds: float = 0.2) -> bool:
    """Whether nobody listens. A server that is only busy still accepts."""
    try:
        with socket.create_connection((HOST, port), timeout=seconds):
            return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def listener(port: int) -> tuple[int, str] | None:
    """Number and name of the process that listens on a port, where the system tells us."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for entry in Path("/proc").glob("[0-9]*/fd/*") if sockets else ():
        with suppress(OSError):
            if str(entry.readlink()) in sockets:
                process = entry.parents[1]
                return int(process.name), (process / "comm").read_text(errors="replace").strip()
    return None


def _inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found
