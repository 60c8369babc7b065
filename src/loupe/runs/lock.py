"""One process per run folder: an advisory lock that the system drops when its holder dies, however it dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loupe.errors import RunError, cannot_write, writing


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder. Raises RunError, naming the holder's pid, if another process has it."""
    import fcntl

    path = folder / "run.lock"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"{folder} is in use by process {holder}",
                hint="wait for it, or give this run a name of its own: --name NAME",
            ) from None
        except OSError as error:
            raise cannot_write(path, error) from None
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
