"""Hostile answers through every metric, adapter and scorer: nothing crashes, hangs or eats the memory.

`python -m tests.hostile.strings --count 20000` does the same with many more.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import loupe.metrics
from loupe.benchmarks.registry import benchmark_ids
from loupe.benchmarks.shared.fields.json_answers import parse_like_docext
from loupe.engines.adapters.steps import STEPS
from loupe.errors import DatasetError
from loupe.metrics.teds.table_tree import TableTooLargeError
from tests.hostile import strings as hostile
from tests.support.synthetic import MAKERS

ROOT = Path(__file__).parents[2]
#: Public names of `loupe.metrics` that take no text of a model.
WITHOUT_TEXT = {"bleu_of_sums", "rate_of_sums", "compression_ratio", "vision_tokens", "installed_wordnet"}


def test_hostile_strings_leave_every_metric_adapter_and_scorer_standing() -> None:
    words = [sys.executable, "-m", "tests.hostile.strings", "--count", "120", "--jobs", "2"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_megabyte_in_a_single_line_leaves_them_standing_too() -> None:
    number = next(number for number in range(10_000) if len(hostile.hostile(number)) >= 900_000)
    words = [sys.executable, "-m", "tests.hostile.strings", "--start", str(number), "--count", "1", "--jobs", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_no_public_metric_and_no_adapter_is_left_out() -> None:
    attacked = {name.split(" ")[0] for name, _ in hostile.metric_calls("a", "b")}
    functions = {name for name in loupe.metrics.__all__ if not isinstance(getattr(loupe.metrics, name), type)}
    assert functions - attacked == WITHOUT_TEXT
    assert {name for name, _ in hostile.adapter_calls("a")} == {f"adapter {name}" for name in STEPS}


def test_no_benchmark_is_left_out(tmp_path: Path) -> None:
    subjects = hostile.Subjects(tmp_path)
    attacked = {label.split(" ")[1] for label, _, _ in subjects.samples}
    assert set(benchmark_ids()) == attacked, "a new benchmark needs a maker in tests/support/synthetic.py"
    assert set(MAKERS) <= attacked


def test_every_kind_of_string_is_among_the_first_few_hundred_and_all_differ() -> None:
    strings = [hostile.hostile(number) for number in range(320)]
    assert len(hostile.KINDS) < 320 and len(set(strings)) > 250
    joined = "".join(strings)
    assert all(piece in joined for piece in ("\0", "\ud800", "colspan", "<table>", '{"a":', "<think>", "\\frac"))


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), RecursionError("x"), MemoryError(), ValueError("x")])
def test_an_exception_that_is_not_documented_is_a_finding(error: Exception) -> None:
    def call() -> object:
        raise error

    assert type(error).__name__ in hostile._try(call)


@pytest.mark.parametrize("error", [TableTooLargeError("x"), DatasetError("x")])
def test_a_documented_exception_is_none(error: Exception) -> None:
    def call() -> object:
        raise error

    assert hostile._try(call) == ""


def test_infinity_is_a_finding() -> None:
    assert "not a finite number" in hostile._try(lambda: float("inf"))


def test_a_child_that_dies_is_a_finding_with_its_number_and_the_next_string_is_still_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "sitecustomize.py"
    site.write_text(
        "import os, sys\n"
        "if '--child' in sys.argv:\n"
        "    import tests.hostile.strings as there\n"
        "    import __main__\n"
        "    real = os.pwrite\n"
        "    def pwrite(file, data, offset):\n"
        "        done = real(file, data, offset)\n"
        "        if data.split() == [b'000000000003', b'0']: os.abort()\n"
        "        return done\n"
        "    os.pwrite = pwrite\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    # Without string 0, of which formulas would be drawn.
    words = [sys.executable, "-m", "tests.hostile.strings", "--start", "1", "--count", "5", "--jobs", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    (finding,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, finding["number"], finding["finding"]) == (1, 3, "exit code -6")


def test_an_answer_on_which_json_repair_fails_its_own_assertion_holds_no_object() -> None:
    assert parse_like_docext("{'```json[```") is None
