"""Limits of processes: memory and time of those that read other people's files, and how many run at once.

A page of 600 bytes may ask for 16 GB, or never end. Where it is read, the process has its limits from the start: what
breaks them costs the page, not the machine.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Final

from loupe.errors import UsageError

#: The variable that allows larger pages, in megapixels, how many are allowed without it, and the most it may say.
ALLOW_LARGE: Final = "LOUPE_MAX_MEGAPIXELS"
_MEGAPIXELS, _MOST_MEGAPIXELS = 200, 2_000
#: Seconds that reading one page may take.
SECONDS: Final = 60.0
TOO_LONG: Final = f"takes more than {SECONDS:g} s to be read"

_bounded = False
#: Soft and hard limits as they were, by kind.
_USERS: Final[dict[int, tuple[int, int]]] = {}


def max_pixels() -> int:
    """Return how many pixels a page may have: 200 megapixels, which are 600 MB in memory, or what the user allows.

    Raises UsageError if LOUPE_MAX_MEGAPIXELS is not a whole number up to 2,000.
    """
    said = os.environ.get(ALLOW_LARGE, "") or str(_MEGAPIXELS)
    if not (said.isascii() and said.isdigit() and len(said) < 10 and 1 <= int(said) <= _MOST_MEGAPIXELS):
        raise UsageError(
            f"{ALLOW_LARGE}={said[:40]!r} is not a whole number from 1 to {_MOST_MEGAPIXELS:,}",
            hint=f"export {ALLOW_LARGE}=400",
        )
    return int(said) * 10**6


def max_memory() -> int:
    """Return how many bytes reading one page may take: twice a page of `max_pixels`, and a little; at least 2 GiB."""
    return max(2 << 30, 10 * max_pixels())


def too_much_memory() -> str:
    """Return what is wrong with a page that breaks the limit."""
    return f"needs more than {_gibibytes()} GiB of memory to be read"


def too_much_or_crash() -> str:
    """Return the same if it may be a bug: a failed allocation ends some decoders just so."""
    return f"needs more than {_gibibytes()} GiB of memory, or crashes its reader"


def _gibibytes() -> str:
    return f"{max_memory() / (1 << 30):.3g}"


def bound_process() -> None:
    """From here on, this process ends rather than take more than `max_memory`. It only reads pages or data."""
    global _bounded
    _bounded = True
    if sys.platform == "linux":
        # Not the address space: libraries reserve much that they never use.
        lower_limit(resource.RLIMIT_DATA, max_memory())
    else:
        # Elsewhere the system does not enforce it.
        threading.Thread(target=watch_memory, args=(max_memory(),), daemon=True).start()


def outlive_signals() -> None:
    """Signals that end a whole job (batch systems send them to every process) leave a worker to its parent.

    What the worker starts or forks does not inherit this.
    """
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in ending:
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=lambda: [signal.signal(number, signal.SIG_DFL) for number in ending])


def is_bounded() -> bool:
    """True if this process has its limits, so that it may read pages itself."""
    return _bounded


def bound_seconds() -> None:
    """Let this process compute for SECONDS more, also when nobody is left to end it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + SECONDS) + 2)


def lower_limit(kind: int, limit: int) -> None:
    """Set a limit, or leave the user's own, with which this process started, where that is lower."""
    soft, hard = _USERS.setdefault(kind, resource.getrlimit(kind))
    finite = [value for value in (limit, soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(kind, (min(finite), hard))


def watch_memory(limit: int, *, every: float = 0.02) -> None:
    """End this process as a failed allocation does (SIGABRT) when it has ever held more than `limit` bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit <= limit:
        time.sleep(every)
    os.kill(os.getpid(), signal.SIGABRT)


def may_lack_memory(code: int) -> bool:
    """True if a bounded process may have ended with this exit code as PDFium does where it gets no memory."""
    return code in (-signal.SIGABRT, -signal.SIGTRAP, -signal.SIGILL)


def why_it_ended(code: int) -> str:
    """Explain what a page did to the bounded process that ended with this exit code (negative: the signal)."""
    if may_lack_memory(code):
        return too_much_or_crash()
    if code == -signal.SIGXCPU:
        return TOO_LONG
    return f"crashes its reader ({how_it_ended(code)})"


def how_it_ended(code: int) -> str:
    """Name the exit code of a process, or the signal that ended it (a negative code)."""
    names = {number.value: number.name for number in signal.Signals}
    return names.get(-code, f"signal {-code}") if code < 0 else f"exit code {code}"


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


# Page images are allocated and freed by the megabyte, thousands of times. glibc gives such blocks back to the system
# at once and gets them again page by page; for a 400 KB image that costs about as much CPU as encoding it. Other C
# libraries have no such switch, and do without. The numbers stand in <malloc.h>.
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
