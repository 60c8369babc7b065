"""A folder that nobody asked for: it goes with the last object that holds it, or with the process."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import weakref
from contextlib import ExitStack
from pathlib import Path

from loupe.files.scratch import scratch_folder


class TemporaryFolder:
    """A new folder below that for temporary files."""

    def __init__(self) -> None:
        if not _parent().is_dir():  # something cleans up there
            _parent.cache_clear()
        self.path = Path(tempfile.mkdtemp(dir=_parent()))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@functools.cache
def _parent() -> Path:
    """Return the one folder of this process: its lock takes a descriptor, of which a process has few."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(scratch_folder("loupe-run-"))
