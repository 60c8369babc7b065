"""A run folder may come from anybody: opening it executes nothing that its run.json names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command_line import READER, loupe

EVIL = """
from pathlib import Path
from loupe.types import Benchmark, Measure, Sample, Score

Path(__file__).with_name("executed").touch()

def load(root):
    yield Sample(id="a", text="a", truth="a")

def score(sample, prediction):
    return [Score(measure="right", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(title="B", version="1", task="text", measures=(Measure(name="right"),), load=load, score=score)
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A finished run of a benchmark file, as it is after a download: nothing of it was ever run in this home."""
    here = tmp_path / "author"
    here.mkdir()
    (here / "b.py").write_text(EVIL)
    (here / "reader.py").write_text(READER)
    assert loupe("run", "b.py", "-e", "python:reader.py:right", cwd=here).returncode == 0
    assert (here / "executed").exists()
    shutil.rmtree(here / ".cache", ignore_errors=True)
    (here / "executed").unlink()
    return here


@pytest.mark.parametrize("words", [("report", "-o", "out.html"), ("score",), ("export",)])
def test_opening_a_foreign_run_executes_nothing(foreign: Path, words: tuple[str, ...]) -> None:
    done = loupe(words[0], "runs/python-reader.py_right/b", *words[1:], cwd=foreign)
    assert not (foreign / "executed").exists()
    assert "Traceback" not in done.stderr


def test_naming_the_file_once_lets_its_runs_be_scored_again(foreign: Path) -> None:
    refused = loupe("score", "runs/python-reader.py_right/b", cwd=foreign)
    assert refused.returncode == 2 and "was not run here as it is now" in refused.stderr
    assert loupe("bench", "show", "b.py", cwd=foreign).returncode == 0
    assert loupe("score", "runs/python-reader.py_right/b", cwd=foreign).returncode == 0
