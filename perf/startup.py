"""What `loupe --help` and `loupe --version` cost: CPU and wall seconds of whole processes. Goal: under 0.25 s of CPU.

Run: `python perf/startup.py` (a few seconds). Ends with exit code 1 if the median is over the goal. Modules are
compiled before, in a folder of this script's own, as an installer leaves them: where Python may not keep compiled
modules (`PYTHONDONTWRITEBYTECODE`), everything costs two to four times as much. The first line, which is not ours to
change, tells a slow machine from a slow Loupe.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

GOAL = 0.25
REPEATS = 10
FLOOR = ("-c", "import click")
COMMANDS = (("--help",), ("--version",), ("run", "--help"))


def cost(words: tuple[str, ...], environment: Mapping[str, str]) -> tuple[float, float]:
    """CPU and wall seconds of one Python process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True, env=environment)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, ended - started


def median_cost(name: str, words: tuple[str, ...], environment: Mapping[str, str]) -> float:
    """Print one line; the CPU seconds. The first process compiles and does not count."""
    costs = [cost(words, environment) for _ in range(REPEATS + 1)][1:]
    cpu, wall = (statistics.median(column) for column in zip(*costs, strict=True))
    print(f"{name:<23} {cpu:.3f} s CPU, {wall:.3f} s wall, median of {REPEATS}")
    return cpu


def main() -> int:
    """Print one line for each command, and say whether the goal is met."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        median_cost(f"python {FLOOR[0]} '{FLOOR[1]}'", FLOOR, environment)
        slowest = max(
            median_cost(f"loupe {' '.join(words)}", ("-m", "loupe", *words), environment) for words in COMMANDS
        )
    print(f"goal {GOAL} s CPU: {'met' if slowest < GOAL else 'MISSED'}")
    return int(slowest >= GOAL)


if __name__ == "__main__":
    sys.exit(main())
