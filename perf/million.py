"""What a sample costs as runs grow: CPU time and memory of each command at 10,000, 100,000 and 1,000,000 text samples.

A folder of one's own with sixty words a sample is read by a function that answers at once, killed halfway (SIGKILL) and
continued; stored answers are scored; both are compared, reported and viewed. CPU seconds are those of all processes,
memory is the largest of the command's own process. The smallest size is the baseline: memory a sample is what a larger
one takes beyond it.

Usage: python perf/million.py [--sizes 10000 100000] [--steps score report] [--keep DIR]   figures: docs/performance.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = 60
#: What the command's own process may take for a sample beyond the smallest size, in bytes.
MEMORY_GOAL = 1_500
#: How much a sample may cost more in a large run than in the smallest one.
TIME_GOAL = 1.1
#: Seconds from the start of a command that continues a run to its first new answer.
CONTINUE_GOAL = 60.0
READER = "def read(request):\n    return request.text.replace('e', 'c', 3)\n"
VOCABULARY = [
    f"{start}{middle}{end}" for start in ("ha", "ti", "mo", "se") for middle in "rlnd" for end in ("e", "en", "y")
]


@dataclass(frozen=True)
class Cost:
    """Of one command: CPU seconds of all its processes and of its own, seconds, and its largest memory in bytes."""

    cpu: float
    own: float
    seconds: float
    memory: int


def make_folder(folder: Path, count: int) -> None:
    """A folder of one's own, and answers of which every one misses some letters."""
    folder.mkdir(parents=True)
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "Many"\nversion = "1"\ntask = "text"\n')
    (folder.parent / "reader.py").write_text(READER)
    chance = random.Random(1)
    with (folder / "samples.jsonl").open("w") as samples, (folder.parent / "answers.jsonl").open("w") as answers:
        for number in range(count):
            text = " ".join(chance.choices(VOCABULARY, k=WORDS))
            row = {"id": f"page-{number:07}", "text": text, "reference": text, "tags": {"kind": "abcd"[number % 4]}}
            samples.write(json.dumps(row) + "\n")
            answers.write(json.dumps({"id": row["id"], "text": text.replace("n", "m", number % 5)}) + "\n")


def command(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """A loupe command in a folder."""
    environment = {**os.environ, "HOME": str(folder), "COLUMNS": "120", "NO_COLOR": "1"}
    with (folder / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "loupe", *words], cwd=folder, stdout=output, stderr=output, env=environment
        )


def largest_memory(pid: int) -> int:
    """The most memory that a process ever had, in bytes; 0 once it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def own_time(pid: int) -> float:
    """CPU seconds of a process, without its children; 0 once it has ended."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def measured(process: subprocess.Popen[bytes], until: Callable[[], bool] = lambda: False) -> Cost:
    """Watch a command until it ends, or kill it when `until` says so."""
    began, memory, own = time.monotonic(), 0, 0.0
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Cost(usage.ru_utime + usage.ru_stime, own, time.monotonic() - began, memory)
        enough = until()
        memory, own = max(memory, largest_memory(process.pid)), max(own, own_time(process.pid))
        if enough:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.02)


def done(folder: Path, *words: str) -> Cost:
    """A command to its end. Raises SystemExit with its output where it fails."""
    process = command(folder, *words)
    cost = measured(process)
    if process.returncode:
        raise SystemExit(f"loupe {' '.join(words)}:\n{(folder / 'output.txt').read_text()[-2000:]}")
    return cost


def size_of(file: Path) -> int:
    """Its bytes, 0 where there is none."""
    return file.stat().st_size if file.exists() else 0


def killed_and_continued(folder: Path, count: int) -> Iterator[tuple[str, Cost]]:
    """A run that is killed halfway, the start of the command that continues it, and the rest."""
    words = ("run", "many", "-e", "python:reader.py:read", "--name", "fast", "--concurrency", "64")
    answers = folder / "runs/fast/many/predictions.jsonl"
    half = size_of(folder / "answers.jsonl") // 2
    yield "run, killed halfway", measured(command(folder, *words), lambda: size_of(answers) > half)
    before = size_of(answers)
    yield "  until it goes on", measured(command(folder, *words), lambda: size_of(answers) > before)
    yield "  continued to its end", done(folder, *words)
    yield "  again, unchanged", done(folder, *words)
    with answers.open("rb") as file:
        found = {json.loads(line)["sample"] for line in file}
    if len(found) != count:
        raise SystemExit(f"{len(found):,} of {count:,} samples have an answer after kill -9")


def viewed(folder: Path) -> Cost:
    """The viewer until it has shown its first page, the board of the benchmark and the first page of its samples."""
    process = command(folder, "view", "runs", "--port", "0", "--no-browser")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the address sets a cookie
    shown = False

    def page(address: str) -> str:
        with browser.open(address) as answer:
            return str(answer.read().decode())

    def all_shown() -> bool:
        nonlocal shown
        output = (folder / "output.txt").read_text()
        address = next((word for word in output.split() if word.startswith("http://")), "")
        if address and not shown:
            found = re.search(r'href="(/b/[^/"]+)"', page(address))
            if found is None:
                raise SystemExit("the viewer shows no benchmark")
            board = address.partition("/?")[0] + found[1]
            shown = bool(page(board)) and bool(page(f"{board}/samples"))
        return shown

    return measured(process, all_shown)


def steps(folder: Path, count: int) -> dict[str, Callable[[], Iterator[tuple[str, Cost]]]]:
    """What is measured, by name, in this order."""

    def score() -> Iterator[tuple[str, Cost]]:
        yield "score of stored answers", done(folder, "score", "many", "answers.jsonl", "--name", "stored")
        yield "  again, unchanged", done(folder, "score", "runs/stored/many")

    both = ("runs/stored/many", "runs/fast/many")
    return {
        "run": lambda: killed_and_continued(folder, count),
        "score": score,
        "compare": lambda: iter([("compare", done(folder, "compare", *both))]),
        "report": lambda: iter([("report", done(folder, "report", *both, "-o", "report.html"))]),
        "view": lambda: iter([("view, first pages", viewed(folder))]),
    }


def main() -> int:
    """Measure each size; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--steps", nargs="+", default=["run", "score", "compare", "report", "view"])
    parser.add_argument("--keep", type=Path, help="leave folders and runs here, and make none that is there")
    arguments = parser.parse_args()
    root = arguments.keep or Path(tempfile.mkdtemp(prefix="loupe-million-"))
    first: dict[str, Cost] = {}
    smallest, missed = arguments.sizes[0], False
    print(
        f"{'samples':>9} {'step':<26}{'CPU s':>8}{'own':>8}{'wall':>8}{'ms each':>9}{'MB':>7}{'B each':>8}", flush=True
    )
    try:
        for count in arguments.sizes:
            folder = root.resolve() / str(count)
            if not folder.exists():
                make_folder(folder / "many", count)
            for name in arguments.steps:
                for step, cost in steps(folder, count)[name]():
                    base = first.setdefault(step, cost)
                    extra = (cost.memory - base.memory) / (count - smallest) if count > smallest else 0.0
                    missed |= extra > MEMORY_GOAL or cost.cpu / count > TIME_GOAL * base.cpu / smallest
                    missed |= step == "  until it goes on" and cost.seconds > CONTINUE_GOAL
                    print(
                        f"{count:>9,} {step:<26}{cost.cpu:>8.1f}{cost.own:>8.1f}{cost.seconds:>8.1f}"
                        f"{1000 * cost.cpu / count:>9.3f}{cost.memory / 1e6:>7.0f}{extra:>8.0f}",
                        flush=True,
                    )
    finally:
        if not arguments.keep:
            shutil.rmtree(root)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
