"""A folder that nobody asked for: it goes with the last object that holds it, or with the process."""

from __future__ import annotations

import weakref
from contextlib import ExitStack

from loupe.files.scratch import scratch_folder


class TemporaryFolder:
    """A new folder below that for temporary files."""

    def __init__(self) -> None:
        held = ExitStack()
        self.path = held.enter_context(scratch_folder("loupe-run-"))
        weakref.finalize(self, held.close)
