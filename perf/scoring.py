"""Scoring speed per benchmark on sets of our own, as large as the real ones, and scoring an unchanged run again.

    python perf/scoring.py [--scale 1.0] [--cores 1,2] [--only ocrbench,pubtabnet]

Each measurement is `loupe.pipeline.score_run` on a finished run: samples are read, answers scored in worker processes,
lines and the result with its intervals written. It runs in a fresh process that is bound to so many cores. Printed:
wall seconds and samples per second, the peak memory of all its processes together, the seconds for the same run again,
unchanged, when every score is reused, and the headline, to show that the answers are neither perfect nor noise. Goals:
again in under 1 s; 9,115 tables, TEDS and TEDS-S, in under 30 s on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.synthetic import write_prepared

#: Benchmark → number of samples of the real set, and what they are called.
SIZES = {
    "ocrbench": (1_000, "questions"),
    "docvqa": (5_349, "questions"),
    "infovqa": (2_801, "questions"),
    "chartqa": (2_500, "questions"),
    "textvqa": (5_000, "questions"),
    "cc_ocr": (7_058, "images"),
    "ocrbench_v2": (10_000, "questions"),
    "omni_parse_bench": (2_937, "pages"),
    "pubtabnet": (9_115, "tables"),
    "unimer_test": (23_757, "formulas"),
    "nanonets_kie": (987, "documents"),
    "dp_bench": (200, "pages"),
}
_POLL_SECONDS = 0.05


def make_run(ident: str, folder: Path, count: int) -> Path:
    """A finished run on `count` samples: data, answers and run.json, but no scores. Returns its folder."""
    from loupe.benchmarks.registry import get_benchmark
    from loupe.pipeline import survey
    from loupe.runs.folder import claim
    from loupe.runs.info import RunInfo, signature
    from loupe.types import Prediction

    data = folder / "data" / ident
    answers = write_prepared(ident, data, count, images=False)
    benchmark = get_benchmark(ident)
    found = survey(benchmark, ident, data, {}, pages=False)
    info = RunInfo(
        benchmark=ident,
        benchmark_id=ident,
        version=benchmark.version,
        engine="synthetic",
        profile={},
        data=str(data),
        truth_digest=found.truth_digest,
        data_digest=found.truth_digest,
        total=count,
    )
    path = folder / "runs" / "synthetic" / ident
    lines = (msgspec.json.encode(Prediction(sample=sample, text=answers[sample])) for sample in found.ids)
    with claim(path, info) as run:
        run.predictions_file.write_bytes(b"".join(line + b"\n" for line in lines))
        run.write_info(msgspec.structs.replace(info, signature=signature(info)))
    return path


def measure(path: Path, cores: int) -> dict[str, float]:
    """Score a run twice on so many cores; called in a process of its own."""
    from loupe.pipeline import score_run

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    (path / "scores.jsonl").unlink(missing_ok=True)
    with peak_memory() as peak:
        began = time.perf_counter()
        result = score_run(path, jobs=cores)
        first = time.perf_counter() - began
    began = time.perf_counter()
    score_run(path, jobs=cores)
    again = time.perf_counter() - began
    value = result.measures[result.headline].value
    broken = sum(failure.outcome == "scorer" for failure in result.failures)
    return {"seconds": first, "again": again, "mib": peak[0] / 2**20, "headline": value or 0.0, "broken": broken}


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The largest sum of resident bytes of this process and its children, looked at every 50 ms (Linux)."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_SECONDS):
            peak[0] = max(peak[0], sum(map(_resident, [os.getpid(), *_children(os.getpid())])))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def _children(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in file.read_text().split()]
        except OSError:
            continue  # a thread that has just ended
    return found + [below for child in found for below in _children(child)]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def in_process(path: Path, cores: int) -> dict[str, float]:
    """`measure` in a fresh interpreter, so that imports and memory of one do not count for the next.

    No TeX is found there: what it costs to typeset formulas for CDM is measured by perf/cdm.py.
    """
    words = [sys.executable, __file__, "--measure", str(path), "--cores", str(cores)]
    without_programs = {**os.environ, "PATH": ""}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=without_programs)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Make the sets, measure, print one line each."""
    parser = argparse.ArgumentParser(description="Samples per second of scoring, per benchmark.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the real sets' sizes")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--only", default=",".join(SIZES))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure, int(chosen.cores))))
        return
    names = ("seconds", "per second", "peak MiB", "again s", "headline")
    print(f"{'benchmark':<14}{'samples':>18}{'cores':>7}" + "".join(map("{:>12}".format, names)))
    for ident in chosen.only.split(","):
        size, unit = SIZES[ident]
        count = max(2, round(size * chosen.scale))
        with tempfile.TemporaryDirectory() as folder:
            path = make_run(ident, Path(folder), count)
            for cores in map(int, chosen.cores.split(",")):
                found = in_process(path, cores)
                print(line_of(ident, f"{count:,} {unit}", count, cores, found), flush=True)


def line_of(ident: str, samples: str, count: int, cores: int, found: dict[str, float]) -> str:
    """One line of the table."""
    numbers = f"{found['seconds']:>12.2f}{count / found['seconds']:>12,.0f}{found['mib']:>12.0f}"
    numbers += f"{found['again']:>12.2f}{found['headline']:>12.4g}"
    broken = f"  {found['broken']:.0f} broken" if found["broken"] else ""
    return f"{ident:<14}{samples:>18}{cores:>7}{numbers}{broken}"


if __name__ == "__main__":
    main()
