"""Servers that outlived the Loupe that started them: found through `server.json`, and stopped.

Source: docs/protocols/engines.md#server-stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loupe.data.user_folders import cache_folder
from loupe.errors import EngineUnavailableError
from loupe.files.folder import Folder
from loupe.servers.record import FILE, ServerRecord, read_record, write_record
from loupe.servers.stopping import USUAL_STOP, StopPatience, stop_processes


def kept_root() -> Path:
    """Where servers of commands that store no run leave their logs and records, as runs do below theirs."""
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
