"""Keeping freed memory: page images are allocated and freed by the megabyte, thousands of times.

glibc gives such blocks back to the system at once and gets them again page by page; for a 400 KB image that costs about
as much CPU as encoding it. Other C libraries have no such switch, and do without.
"""

from __future__ import annotations

import ctypes
from functools import cache

# <malloc.h> of glibc.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MOST_KEPT = 64 << 20


@cache
def keep_freed_memory() -> bool:
    """Let this process hold up to 64 MiB of freed memory for the next page. Returns whether that could be set."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 32 << 20)) and bool(mallopt(_TRIM_THRESHOLD, _MOST_KEPT))
