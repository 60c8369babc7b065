"""What `loupe --help` and `loupe --version` cost: CPU and wall seconds of whole processes. Goal: under 0.25 s of CPU.

Run: `python perf/startup.py` (a few seconds). Ends with exit code 1 if the median is over the goal.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

GOAL = 0.25
REPEATS = 10
COMMANDS = (("--help",), ("--version",), ("run", "--help"))


def cost(words: tuple[str, ...]) -> tuple[float, float]:
    """CPU and wall seconds of one process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "loupe", *words], stdout=subprocess.DEVNULL, check=True)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, ended - started


def main() -> int:
    """Print one line for each command, and say whether the goal is met."""
    slowest = 0.0
    for words in COMMANDS:
        costs = [cost(words) for _ in range(REPEATS + 1)][1:]
        cpu, wall = (statistics.median(column) for column in zip(*costs, strict=True))
        slowest = max(slowest, cpu)
        print(f"loupe {' '.join(words):<12} {cpu:.3f} s CPU, {wall:.3f} s wall, median of {REPEATS}")
    print(f"goal {GOAL} s CPU: {'met' if slowest < GOAL else 'MISSED'}")
    return int(slowest >= GOAL)


if __name__ == "__main__":
    sys.exit(main())
