"""Fit engine processes to this machine: how many run at once, and how they keep freed memory.

Page images are allocated and freed by the megabyte, thousands of times. glibc gives such blocks back to the system
at once and gets them again page by page; for a 400 KB image that costs about as much CPU as encoding it. Other C
libraries have no such switch, and do without.
"""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from pathlib import Path

from loupe.data.bounds import max_memory

_share: list[int] = []


def share_cores(count: int) -> None:
    """From now on this process counts on so many cores: it is one of several workers on its machine."""
    _share[:] = [max(1, count)]


def cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    there = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min([there, *_share])


def processes(memory: int) -> int:
    """One process per core, as far as processes of `memory` bytes fit into three quarters of the machine's memory."""
    return max(1, min(cores(), _memory() * 3 // 4 // memory))


def memory_share(workers: int) -> int:
    """Bytes for each of so many workers: together three quarters of the machine's memory."""
    return _memory() * 3 // 4 // workers


def readers(meminfo: Path = Path("/proc/meminfo")) -> int:
    """One process per core, as far as processes that read pages, with their limits, fit into the free memory."""
    text = meminfo.read_text() if meminfo.is_file() else ""
    free = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    available = min(_memory(), int(free[1]) * 1024) if free else _memory()
    return max(1, min(cores(), available // max_memory()))


def _memory() -> int:
    """Bytes of memory: the machine's, or the container's limit if that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else ""
    return min(total, int(text)) if text.isdigit() else total


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
