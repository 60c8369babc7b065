"""`loupe export`: answers for official evaluators, and layouts for other scripts."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import complaint, loupe, make_folder

RIGHT, SOMETIMES = "python-reader.py_right", "python-reader.py_sometimes"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines on one folder; the second one fails on p3."""
    root = tmp_path_factory.mktemp("finished")
    make_folder(root)
    engines = ("-e", "python:reader.py:right", "-e", "python:reader.py:sometimes")
    assert loupe("run", "mydocs", *engines, cwd=root).returncode == 0
    return root


@pytest.fixture
def here(finished: Path, tmp_path: Path) -> Path:
    """The two runs, for one test to do with as it likes."""
    return shutil.copytree(finished, tmp_path, dirs_exist_ok=True)


def test_a_folder_of_its_own_gets_the_answers_and_nothing_else(here: Path) -> None:
    done = loupe("export", f"runs/{SOMETIMES}/mydocs", "--to", "./answers", "--json", cwd=here)
    assert json.loads(done.stdout) == {"folder": "answers", "written": 5, "failed": 1}
    files = sorted(path.stem for path in (here / "answers").iterdir())
    assert files == ["p0", "p1", "p2", "p4", "p5"]


def test_a_layout_that_is_misspelled_is_no_new_folder(here: Path) -> None:
    done = loupe("export", f"runs/{RIGHT}/mydocs", "--to", "omnidoc", cwd=here)
    said, hint = complaint(done)
    assert (done.returncode, said) == (2, "--to omnidoc: no such layout; did you mean 'omnidocbench'?")
    assert hint.startswith("choose one of csv, parquet, ") and hint.endswith("; or name a folder: --to ./omnidoc")
    assert (
        complaint(loupe("export", f"runs/{RIGHT}/mydocs", "--to", "latex", cwd=here))[0] == "--to latex: no such layout"
    )
    assert not (here / "omnidoc").exists() and not (here / "latex").exists()
    assert loupe("export", f"runs/{RIGHT}/mydocs", "--to", "./omnidoc", cwd=here).returncode == 0


def test_evaluation_writes_answers_results_and_a_comparison_of_all_runs_below_a_root(here: Path) -> None:
    done = loupe("export", "runs", "--to", "evaluation", "--output", "out", cwd=here)
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(here / "out").as_posix() for path in (here / "out").rglob("*") if path.is_file()}
    (comparison,) = (file for file in files if "/" not in file)
    assert re.fullmatch(r"eval_comparison_\d{8}_\d{6}\.json", comparison)
    assert files - {comparison} == {
        f"results/{RIGHT}_mydocs_eval.json",
        f"results/{SOMETIMES}_mydocs_eval.json",
        *(f"predictions/{RIGHT}/mydocs/p{n}.txt" for n in range(6)),
        *(f"predictions/{SOMETIMES}/mydocs/p{n}.txt" for n in (0, 1, 2, 4, 5)),
    }
    assert (here / f"out/predictions/{RIGHT}/mydocs/p1.txt").read_text() == "beta gamma"
    assert done.stdout.splitlines()[-1] == f"out/{comparison}"


def test_the_results_file_holds_every_measure_every_failure_and_every_sample(here: Path) -> None:
    loupe("export", f"runs/{SOMETIMES}/mydocs", "--to", "evaluation", cwd=here)
    found = json.loads((here / f"results/{SOMETIMES}_mydocs_eval.json").read_text())
    stored = json.loads((here / f"runs/{SOMETIMES}/mydocs/result.json").read_text())
    assert (found["model"], found["benchmark"]) == (SOMETIMES, "mydocs")
    assert (found["num_samples"], found["num_failed"]) == (6, 1)
    assert found["measures"] == stored["measures"] and found["signature"] == stored["signature"]
    assert found["metrics"][found["headline"]] == stored["measures"][stored["headline"]]["value"]
    samples = {each["sample_id"]: each for each in found["samples"]}
    assert samples["p0"]["metrics"]["text_similarity"] == 1.0
    assert (samples["p3"]["class"], samples["p3"]["metrics"]["text_similarity"]) == ("error", 0.0)


def test_the_comparison_holds_each_model_on_each_benchmark_and_the_table(here: Path) -> None:
    done = loupe("export", "runs", "--to", "evaluation", "--json", cwd=here)
    found = json.loads((here / json.loads(done.stdout)["comparison"]).read_text())
    assert (found["models"], found["benchmarks"]) == ([RIGHT, SOMETIMES], ["mydocs"])
    assert found["results"][RIGHT]["mydocs"]["metrics"]["text_similarity"] == 1.0
    assert found["results"][SOMETIMES]["mydocs"]["num_failed"] == 1
    assert [row["engine"] for row in found["table"]["rows"]] == [RIGHT, SOMETIMES]


def test_two_runs_that_would_get_the_same_names_are_refused_before_anything_is_written(here: Path) -> None:
    loupe("run", "mydocs", "-e", "python:reader.py:right", "--runs", "again", cwd=here)
    runs = (f"runs/{RIGHT}/mydocs", f"again/{RIGHT}/mydocs")
    done = loupe("export", *runs, "--to", "evaluation", "--output", "out", cwd=here)
    assert complaint(done)[0] == f"runs/{RIGHT}/mydocs and again/{RIGHT}/mydocs are both {RIGHT} on mydocs"
    assert not (here / "out").exists()


def test_a_run_without_scores_is_refused_with_the_command_that_scores_it(here: Path) -> None:
    loupe("infer", "mydocs", "-e", "python:reader.py:right", "--name", "unscored", cwd=here)
    done = loupe("export", "runs/unscored/mydocs", "--to", "evaluation", cwd=here)
    assert complaint(done) == ("runs/unscored/mydocs has no scores yet", "score it: loupe score runs/unscored/mydocs")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--output", "out"),
            "--output goes with --to csv, parquet, hf-eval-results, inspect, evaluation, omnidocbench, mdpbench, "
            "failed-tests, submission",
        ),
        (("runs/x/mydocs", "--to", "./out"), "several runs do not go into one folder"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert complaint(loupe("export", "runs/y/mydocs", *words, cwd=tmp_path))[0] == message


@pytest.mark.parametrize(
    "words", [("--to", "csv", "-o", "taken/x.csv"), ("--to", "./taken"), ("--to", "inspect", "-o", "taken")]
)
def test_a_file_where_a_folder_should_be_is_named(here: Path, words: tuple[str, ...]) -> None:
    (here / "taken").write_text("kept")
    done = loupe("export", f"runs/{RIGHT}/mydocs", *words, cwd=here)
    assert (done.returncode, complaint(done)[0]) == (2, "taken is a file, not a folder")
    assert complaint(done)[1].endswith("mv taken taken.old") and (here / "taken").read_text() == "kept"
