"""CPU time that `loupe.run` spends beside a function of the caller, over 2,000 samples, against a bare loop.

    python perf/function_engine.py [--samples 2000] [--repeats 3]

Both call the same function with the same samples and score every answer with the benchmark's own `score`; Loupe also
stores each answer, runs the scorers in processes, draws intervals and writes the result. It does so twice: in a
temporary folder (`runs=None`), and in a folder that stays, where each answer is synced to the disk and exported.
Counted is the CPU time of this process and of its children, user and system, of whole calls after a warm-up, in turns.
Printed: milliseconds of CPU per sample (the median), and the overhead. Goal: at most 1.5 ms for the folder that stays;
the exit code is 1 where it is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import loupe
from loupe.benchmarks import get_benchmark
from loupe.types import Prediction

GOAL = 1.5
TEXT = "It was the ferry clock that told the town the time, and nobody knew who wound it up. " * 4

BENCHMARK = '''"""Short texts, as many as asked for."""
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, count: int = 1):
    for number in range(count):
        yield Sample(id=f"text-{number:05}", text=str(number), truth=f"{number} " + TEXT)

def score(sample, prediction):
    return [Score(measure="cer", counts=character_errors(prediction.text, sample.truth))]

TEXT = "%s"
benchmark = Benchmark(title="texts", version="1", task="text", prompt="Read.",
                      measures=(Measure(name="cer", higher_is_better=False),), load=load, score=score)
'''


def read(page: loupe.Page) -> str:
    """What a model would take its time for."""
    return f"{page.text} {TEXT[:-20]}"


def bare(module: Path, count: int) -> None:
    """The loop that somebody would write."""
    benchmark = get_benchmark(str(module))
    for sample in benchmark.load(None, count=count):
        text = read(loupe.Page(sample.id, text=sample.text))
        benchmark.score(sample, Prediction(sample=sample.id, text=text))


def temporary(module: Path, count: int) -> None:
    """The same by Loupe, in a temporary folder."""
    check(loupe.run(str(module), read, option={"count": count}, runs=None), count)


def filed(module: Path, count: int) -> None:
    """The same by Loupe, in a folder that stays."""
    check(loupe.run(str(module), read, option={"count": count}, runs=module.parent / "runs"), count)


def check(run: loupe.Run, count: int) -> None:
    """Every sample was read and scored."""
    assert run["cer"].n == count and not run.failures


def cpu_seconds(act: Callable[[], None]) -> float:
    """CPU time of this process and of its children that have ended, while `act` is at work."""
    before = os.times()
    act()
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def main() -> int:
    """Measure, print, and say whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "texts.py"
        module.write_text(BENCHMARK % TEXT, encoding="utf-8")
        acts = (bare, temporary, filed)
        for act in acts:
            act(module, 32)
        spent: dict[str, list[float]] = {act.__name__: [] for act in acts}
        for _ in range(asked.repeats):
            for act in acts:
                spent[act.__name__].append(cpu_seconds(partial(act, module, asked.samples)))
    loop, *runs = (1000 * median(times) / asked.samples for times in spent.values())
    print(f"{asked.samples:,} samples, CPU per sample: bare loop {loop:.3f} ms")
    for act, run in zip(acts[1:], runs, strict=True):
        print(f"loupe.run, {act.__name__}: {run:.3f} ms, overhead {run - loop:.3f} ms")
    print(f"goal: an overhead of at most {GOAL} ms, filed")
    return 0 if runs[-1] - loop <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
