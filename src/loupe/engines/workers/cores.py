"""How many engine processes fit on this machine."""

from __future__ import annotations

import os
import re
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
