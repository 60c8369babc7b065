"""`loupe score RUN RUN…` and `loupe score runs`: many runs at once, what moved, and what could not be scored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from loupe.runs.folder import RunFolder
from tests.support.command_line import complaint, installed, loupe


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Two runs of answers that exist already, read but not scored."""
    for engine, text in (("good", "hello"), ("fair", "help")):
        answers = tmp_path / f"{engine}.jsonl"
        answers.write_text(json.dumps({"id": "prose", "text": text}) + "\n", encoding="utf-8")
        words = ("infer", "sample_pages", "-e", f"predictions:{answers}", "--name", engine, "--limit", "1")
        assert loupe(*words, cwd=tmp_path).returncode == 0
    return tmp_path


def test_all_runs_below_a_root_are_scored_and_the_second_time_only_read(here: Path) -> None:
    first = json.loads(loupe("score", "runs", "--json", cwd=here).stdout)
    assert sorted(first["new"]) == ["runs/fair/sample_pages", "runs/good/sample_pages"]
    assert [run["total"] for run in first["runs"]] == [1, 1] and first["failed"] == {}
    again = loupe("score", "runs/good/sample_pages", "runs/fair/sample_pages", "--plain", cwd=here)
    assert again.returncode == 0 and "# scored 2 runs: 2 unchanged" in again.stdout
    assert "1 of 2: runs/good/sample_pages" in again.stderr


def test_what_moved_is_named_with_its_change(here: Path) -> None:
    loupe("score", "runs", cwd=here)
    run = RunFolder.open(here / "runs" / "good" / "sample_pages")
    lines = run.predictions_file.read_text(encoding="utf-8")
    run.predictions_file.write_text(lines.replace("hello", "another answer"), encoding="utf-8")
    shown = loupe("score", "runs", "--plain", cwd=here).stdout
    assert "# scored 2 runs: 1 unchanged, 1 moved" in shown
    [line] = [line for line in shown.splitlines() if line.startswith("text_similarity\t")]
    assert line.endswith("\truns/good/sample_pages")
    document = json.loads(loupe("score", "runs", "--json", cwd=here).stdout)
    assert document["moved"] == {}, "and then it stands"


def test_a_run_that_cannot_be_scored_costs_only_itself(here: Path) -> None:
    (here / "runs" / "fair" / "sample_pages" / "run.json").write_text("{", encoding="utf-8")
    found = loupe("score", "runs", "--plain", cwd=here)
    assert found.returncode == 2 and "# scored 1 run: 1 new" in found.stdout
    assert "# could not score 1 run" in found.stdout and "run.json" in found.stderr
    shutil.rmtree(here / "runs" / "good")
    assert loupe("score", "runs", cwd=here).returncode == 2


LOAD = """
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    yield Sample(id="a", text="a", truth="a")

def score(sample, prediction):
    return [Score(measure="right", counts=(1.0, 1.0))]

benchmark = Benchmark(title="B", version="1", task="text", measures=(Measure(name="right"),), load=load, score=score)
"""


def test_a_benchmark_that_raises_stops_no_other_and_is_named_with_its_line(here: Path) -> None:
    (here / "own.py").write_text(LOAD)
    (here / "none.jsonl").write_text('{"id": "a", "text": ""}\n')
    assert loupe("infer", "./own.py", "-e", "predictions:none.jsonl", "--name", "own", cwd=here).returncode == 0
    (here / "own.py").write_text(LOAD.replace("    yield", "    raise ValueError('no index')\n    yield"))
    assert loupe("bench", "show", "./own.py", cwd=here).returncode == 0, "the user trusts the file"
    found = loupe("score", "runs", "--plain", cwd=here)
    assert found.returncode == 2 and "# scored 2 runs: 2 new" in found.stdout
    assert "own.py:5: ValueError: no index\n" in found.stderr and "Traceback" not in found.stderr


def test_settings_beside_runs_make_no_benchmark_of_them(here: Path) -> None:
    for place in (here, here / "runs", here / "runs/good"):
        (place / "loupe.toml").write_text('[suites.x]\nbenchmarks = ["sample_pages"]\n')
    found = loupe("score", "runs", "--plain", cwd=here)
    assert found.returncode == 0 and "# scored 2 runs: 2 new" in found.stdout, found.stderr
    found = loupe("score", "runs/good", "runs/fair", "--plain", cwd=here)
    assert found.returncode == 0 and "# scored 2 runs: 2 unchanged" in found.stdout, found.stderr
    assert complaint(loupe("score", ".", cwd=here)) == ("no run at .; did you mean runs?", "list your runs: loupe runs")


@pytest.mark.parametrize("counts", ["[]", "[1.0]", "[1.0, 1.0, 1.0]"])
def test_scores_that_somebody_changed_are_named_and_made_again(counts: str, tmp_path: Path) -> None:
    answers = tmp_path / "x.jsonl"
    answers.write_text('{"id": "prose", "text": "a"}\n{"id": "letter", "text": "b"}\n', encoding="utf-8")
    loupe("score", "sample_pages", answers, "--runs", tmp_path / "runs", cwd=tmp_path)
    run = RunFolder.open(tmp_path / "runs" / "x" / "sample_pages")
    scored = run.scores_file.read_text(encoding="utf-8")
    first, rest = scored.split("\n", 1)
    before, row = first, json.loads(first)
    row["scores"][0]["counts"] = json.loads(counts)
    run.scores_file.write_text(f"{json.dumps(row)}\n{rest}", encoding="utf-8")
    shown = loupe("compare", run.path, run.path, cwd=tmp_path), loupe("report", run.path, cwd=tmp_path)
    for found in shown:
        assert found.returncode == 2 and "Traceback" not in found.stderr
    assert "have different numbers of counts" in shown[1].stderr and "loupe score " in shown[1].stderr
    assert loupe("score", run.path, cwd=tmp_path).returncode == 0
    assert json.loads(run.scores_file.read_text(encoding="utf-8").split("\n", 1)[0]) == json.loads(before)


@pytest.mark.parametrize("option", [("-o", "a=b"), ("--with-published",), ("--name", "x"), ("--limit", "2")])
def test_options_of_one_run_or_of_answers_are_refused(option: tuple[str, ...], here: Path) -> None:
    found = loupe("score", "runs", *option, cwd=here)
    assert found.returncode == 2 and option[0] in found.stderr


def test_every_run_is_held_against_the_floor(here: Path) -> None:
    assert loupe("score", "runs", "--fail-under", "99", cwd=here).returncode == 1
    assert loupe("score", "runs", "--fail-under", "0", cwd=here).returncode == 0


def test_every_command_takes_a_run_by_its_name_below_runs(here: Path) -> None:
    commands = [
        "score good/sample_pages fair",
        "compare good/sample_pages fair/sample_pages --baseline good/sample_pages",
        "report good fair/sample_pages -o r.html",
        "pack good/sample_pages -o p.tar.gz",
        "export good/sample_pages --to csv",
        "lint good/sample_pages",
    ]
    for words in installed(tuple(each.split()) for each in commands):
        done = loupe(*words, cwd=here)
        assert done.returncode == 0, done.stderr
    assert loupe("view", "good/sample_pages", "--help", cwd=here).returncode == 0
    for words in ("score gone/sample_pages", "compare good/gone fair", "report ../runs2/good -o r.html"):
        done = loupe(*words.split(), cwd=here)
        assert done.returncode == 2 and "no run at" in done.stderr
