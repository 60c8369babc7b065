"""A folder for what a browser leaves behind: its process may be killed at any time; the next one clears it away."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path

_NAME = re.compile(r"loupe-browser-(\d+)-")
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.1


def new_folder() -> Path:
    """A new folder of this process in the system's temporary folder; those of processes that are gone are removed."""
    root = Path(tempfile.gettempdir())
    for path in root.glob("loupe-browser-*"):
        found = _NAME.match(path.name)
        if found and path.is_dir() and not path.is_symlink() and _is_ours(path) and not _runs(int(found[1])):
            _clear(path)
    # Short, because Chromium puts a socket into it.
    return Path(tempfile.mkdtemp(prefix=f"loupe-browser-{os.getpid()}-"))


def _clear(path: Path) -> None:
    """Remove the folder. Its browser may still be about to notice that nobody is there, and write until then."""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_PAUSE_SECONDS)


def _is_ours(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
