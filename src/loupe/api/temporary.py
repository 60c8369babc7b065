"""A folder that nobody asked for: it goes with the last object that holds it, or with the process."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A new folder below that for temporary files."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="loupe-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
