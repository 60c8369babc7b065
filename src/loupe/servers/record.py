"""`server.json`: what a run knows of its server; a later run finds and stops one that outlived its Loupe.

Source: docs/protocols/engines.md#server-start and docs/protocols/engines.md#server-stop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from loupe.data.user_folders import cache_folder
from loupe.errors import EngineUnavailableError, LoupeError
from loupe.files.folder import Folder
from loupe.servers.processes import USUAL_STOP, StopPatience, boot, family, find, stop_processes
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
        """True if processes of this server still live although the Loupe that started it does not."""
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


def kept_root() -> Path:
    """The root of logs and records of servers of commands that store no run."""
    return cache_folder("servers", to_write=True)


def kept_folder(command: str, name: str = "server") -> Folder:
    """The folder of one of them; it outlives the command, as an error may point to its log."""
    return Folder(kept_root()) / f"{command}/{name}"


def left_over(runs: Path) -> Iterator[tuple[Folder, ServerRecord]]:
    """The servers that killed runs below a root left behind, each once, with the folder of one of its runs."""
    seen = set()
    for file in sorted(runs.glob(f"*/*/{FILE}")):
        folder = Folder(runs) / str(file.parent.relative_to(runs))
        record = read_record(folder)
        if record is not None and record.mark not in seen and record.is_left_over():
            seen.add(record.mark)
            yield folder, record


def stop_left_over(
    folder: Folder,
    record: ServerRecord,
    patience: StopPatience = USUAL_STOP,
    hurry: Callable[[], bool] = lambda: False,
) -> None:
    """Stop one of them and say so in its record. Raises EngineUnavailableError if it cannot be stopped."""
    left = stop_processes(record.root, known=record.known, mark=record.mark, patience=patience, hurry=hurry)
    if left:
        listed = " ".join(map(str, left))
        raise EngineUnavailableError(f"processes {listed} cannot be stopped", hint=f"kill -9 {listed}")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_record(folder, msgspec.structs.replace(record, state="stopped", stopped=now))
