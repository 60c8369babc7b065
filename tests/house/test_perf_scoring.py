"""perf/scoring.py and perf/questions.py on sets of a few samples: every set is made and scored, and nothing breaks."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.benchmarks.ocrbench_v2.types_of_questions import CATEGORY_OF

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


def test_questions_are_graded_without_an_official_program() -> None:
    words = [sys.executable, "perf/questions.py", "--scale", "0.002", "--only", "docvqa,chartqa,textvqa,cc_ocr"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = [line.partition(", ours")[0] for line in done.stdout.splitlines()]
    assert found == ["docvqa: 11 questions", "chartqa: 5 questions", "textvqa: 10 questions", "cc_ocr: 14 images"]


def test_the_made_up_ocrbench_v2_has_the_published_types_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "perf")
    types = importlib.import_module("questions").TYPES
    assert types.keys() == CATEGORY_OF.keys()
    assert sum(count for count, _ in types.values()) == 10_000
