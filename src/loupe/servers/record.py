"""`server.json`: what a run knows of its server, and how a later one finds it if Loupe was killed.

Source: docs/protocols/engines.md#server-start and #server-stop.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

import msgspec

from loupe.errors import LoupeError
from loupe.files.folder import Folder
from loupe.servers.processes import boot, family, find
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE

FILE = "server.json"
Origin: TypeAlias = Literal["started", "left over", "external"]
EXTERNAL: Origin = "external"


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `server.json`.

    `origin`: started by this run, left over by one that was killed, or somebody else's. `command` is without keys. The
    rest finds it again: processes as (number, when it began), the mark that all of them carry, the Loupe that owns it.
    """

    kind: str
    model: str
    origin: Origin
    state: Literal["starting", "running", "stopped"]
    command: list[str]
    url: str
    port: int
    log: str = ""
    started: str = ""
    stopped: str = ""
    startup_seconds: float = 0.0
    restarts: int = 0
    version: str = ""
    identity: str = ""
    pid: int = 0
    began: str = ""
    known: list[tuple[int, str]] = []
    mark: str = ""
    boot: str = ""
    owner: tuple[int, str] = (0, "")

    @property
    def root(self) -> tuple[int, str]:
        """The server's own process."""
        return self.pid, self.began

    def is_left_over(self) -> bool:
        """Whether processes of this server still live although the Loupe that started it does not."""
        if self.state == "stopped" or self.origin == EXTERNAL or not self.boot or self.boot != boot():
            return False
        pid, began = self.owner
        owner = find(pid)
        if owner is not None and owner.began == began:
            return False
        return bool(family([self.root, *self.known], self.mark))


def read_record(folder: Folder) -> ServerRecord | None:
    """The record in a run folder, None if there is none that can be read."""
    try:
        return json_decoder(ServerRecord).decode(folder.read(FILE))
    except (*UNDECODABLE, LoupeError, OSError):
        return None


def owner() -> tuple[int, str]:
    """This process."""
    process = find(os.getpid())
    return process.key if process else (os.getpid(), "")


def write_record(folder: Folder, record: ServerRecord) -> None:
    """Store the record of a run folder, whole or not at all."""
    folder.write(FILE, msgspec.json.format(encode_json(record), indent=2) + b"\n")
