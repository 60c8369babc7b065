"""Find data sets on this machine: one folder each below LOUPE_DATA, by default in the user's cache folder.

The folder of a data set is named after its benchmark, or after the one that it shares the data with. It holds
the files in upstream's own layout.
"""

from __future__ import annotations

import os
from pathlib import Path

from loupe.data.user_folders import cache_folder


def store_root() -> Path:
    """The folder of all data sets: $LOUPE_DATA, else `loupe/data` in the user's cache ($XDG_CACHE_HOME, ~/.cache)."""
    named = os.environ.get("LOUPE_DATA", "")
    if named:
        return Path(named).expanduser()
    return cache_folder("data")


def default_root(place: str) -> Path:
    """Return where `loupe data get` puts the data set of this name. It need not exist; if it does, it is whole."""
    return store_root() / place
