"""perf/scoring.py on sets of a few samples: every benchmark is scored twice, and nothing breaks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_set_is_made_scored_and_scored_again() -> None:
    words = [sys.executable, "perf/scoring.py", "--scale", "0.0004", "--cores", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert " ".join(header.split()) == "benchmark samples cores seconds per second peak MiB again s headline"
    questions = ["ocrbench", "docvqa", "infovqa", "chartqa", "textvqa", "cc_ocr", "ocrbench_v2"]
    pages = ["omni_parse_bench"]
    assert [line.split()[0] for line in lines] == [
        *questions,
        *pages,
        "pubtabnet",
        "unimer_test",
        "nanonets_kie",
        "dp_bench",
    ]
    assert "broken" not in done.stdout and "10 formulas" in done.stdout
