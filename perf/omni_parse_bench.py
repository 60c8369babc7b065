"""Omni Parse Bench: our tests and the official program's on the same made-up pages, in one run.

    python perf/omni_parse_bench.py --official PYTHON [--pages 300]

PYTHON is one of an environment of its own that has the official program: `python -m venv DIR`, then
`DIR/bin/pip install omni-parse-bench==0.2.0`. Printed: seconds of processor time of both, of grading alone (no reading
of data, no starting of programs), their ratio, and how many verdicts differ, which must be none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.synthetic import write_prepared

from loupe.benchmarks.omni_parse_bench.page import read_answer
from loupe.benchmarks.omni_parse_bench.page_tests import check_page
from loupe.benchmarks.omni_parse_bench.records import read_tests

#: Run by the other Python: pages from a file to seconds and verdicts.
_OFFICIAL = """
import json, os, sys, time
from omni_parse_bench import gold, metric
pages = [json.loads(line) for line in open(sys.argv[1])]
tests = [gold.parse("p", page["gold"]) for page in pages]
began = time.process_time()
found = [[each.result for each in metric.score(page["outputs"], each)] for page, each in zip(pages, tests)]
print(json.dumps([time.process_time() - began, found]), flush=True)
os._exit(0)
"""


def pages_of(folder: Path, count: int) -> list[dict[str, Any]]:
    """Made-up pages with their tests and outputs."""
    answers = write_prepared("omni_parse_bench", folder, count, images=False)
    rows = map(json.loads, (folder / "metadata.jsonl").read_text().splitlines())
    return [{"gold": row["ground_truth"], "outputs": json.loads(answers[row["sample_id"]])} for row in rows]


def official(python: str, file: Path) -> tuple[float, list[list[str]]]:
    """Seconds and verdicts of the official program."""
    done = subprocess.run([python, "-c", _OFFICIAL, str(file)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    seconds, verdicts = json.loads(done.stdout)
    return seconds, verdicts


def main() -> None:
    """Make pages, grade them twice, print one line."""
    parser = argparse.ArgumentParser(description="Grading, ours and the official program's.")
    parser.add_argument("--official", required=True, metavar="PYTHON")
    parser.add_argument("--pages", type=int, default=300)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = pages_of(Path(folder) / "set", chosen.pages)
        file = Path(folder) / "pages.jsonl"
        file.write_text("\n".join(map(json.dumps, pages)))
        theirs, expected = official(chosen.official, file)
    tests = [read_tests(page["gold"], "page") for page in pages]
    began = time.process_time()
    found = [
        [one.verdict for one in check_page(read_answer(json.dumps(page["outputs"])), each)]
        for page, each in zip(pages, tests, strict=True)
    ]
    ours = time.process_time() - began
    graded = [(one, other) for page in zip(found, expected, strict=True) for one, other in zip(*page, strict=True)]
    differ = sum(one != other for one, other in graded)
    print(f"{len(graded):,} tests on {len(pages):,} pages: ours {ours:.2f} s, official {theirs:.2f} s,", end=" ")
    print(f"{theirs / ours:.1f} times; {differ} verdicts differ")


if __name__ == "__main__":
    main()
