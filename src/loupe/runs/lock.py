"""One process per run folder: an advisory lock that the system drops when its holder dies, however it dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from loupe.errors import RunError, cannot_write
from loupe.files.folder import Folder
from loupe.files.plain import writing

LOCK = "run.lock"


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Hold the lock of a run folder. Raises RunError, naming the holder's pid, if another process has it."""
    import fcntl

    place, descriptor = folder.path / LOCK, folder.open_lock(LOCK)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"{folder.path} is in use by process {holder}",
                hint="wait for it, or give this run a name of its own: --name NAME",
            ) from None
        except OSError as error:
            raise cannot_write(place, error) from None
        with writing(place):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
