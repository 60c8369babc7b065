"""What runs are called side by side, and that a table which is cut keeps what names its rows."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest

import loupe
from loupe.benchmarks import benchmark_id
from loupe.cli import main
from loupe.cli.runs import describe
from loupe.errors import UsageError
from loupe.files.folder import Folder
from loupe.pipeline.packs import unpack, write_pack
from loupe.results.group_titles import run_names
from loupe.results.groups import Group, group_runs
from loupe.results.reproduction import checked_run, finished_runs
from loupe.results.sections import format_estimate, format_margin
from loupe.results.tables.record import Table
from loupe.results.tables.terminal import fitted
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo
from loupe.types import Estimate
from tests.support.command_line import make_folder


def run(path: str, engine: str) -> RunFolder:
    info = RunInfo(benchmark="b", benchmark_id="b", version="1", engine=engine, profile={})
    return RunFolder(Folder(Path(path)), info)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("runs/a/b", "runs/c/b"), ["a", "c"]),
        (("runs/a/b", "old/a/b", "runs/c/b"), ["a (runs)", "a (old)", "c"]),
        (("x/a/b", "y/2/a/b"), ["a (x)", "a (y/2)"]),
        (("runs/a/b", "runs/a/b/a/b"), ["a (runs/a/b)", "a (runs/a/b/a/b)"]),
    ],
)
def test_runs_of_one_engine_are_told_apart_by_what_differs_in_their_paths(
    paths: tuple[str, ...], names: list[str]
) -> None:
    assert run_names([run(path, Path(path).parts[-2]) for path in paths]) == names


def test_every_part_of_a_table_that_is_cut_names_its_rows() -> None:
    numbers = [f"{place}00000000" for place in range(8)]
    section = Table(title="t", header=("rank", "engine", *"abcdefgh"), rows=[("1", "reader", *numbers)], keys=2)
    parts = list(fitted([section], 40))
    assert len(parts) > 2 and all(tuple(part.rows[0][:2]) == ("1", "reader") for part in parts)
    assert [cell for part in parts for cell in part.rows[0][2:]] == numbers


@pytest.mark.parametrize(
    ("estimate", "unit", "shown"),
    [
        (Estimate(value=0.9, low=0.88, high=0.92), "fraction", "± 2.00"),
        (Estimate(value=0.9966, low=0.9875, high=0.9993), "fraction", "98.75 … 99.93"),
        (Estimate(value=0.0032, low=0.0009, high=0.0116), "fraction", "0.09 … 1.16"),
        (Estimate(value=1.2, low=0.9, high=1.5), "fraction", "± 30.00"),
        (Estimate(value=838.0, low=815.0, high=861.0, n=1000), "count", "± 23"),
        (Estimate(value=2.0, low=0.0, high=3.0, n=3), "count", "0 … 3"),
    ],
)
def test_a_margin_never_reaches_beyond_what_its_interval_allows(estimate: Estimate, unit: str, shown: str) -> None:
    assert format_margin(estimate, unit) == shown


def test_a_count_says_what_it_is_out_of() -> None:
    assert format_estimate(Estimate(value=838.0, n=1000), "count") == "838 / 1,000"
    assert format_estimate(Estimate(value=3.0, n=3), "count") == "3 / 3"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("run mydocs -e python:reader.py:right --name {}", "the name nnn"),
        ("run mydocs -e python:reader.py:{}", "the name python-reader.py_nnn"),
        ("run {} -e pdf_text", "nnn"),
        ("bench show {}", "nnn"),
        ("report {} -o {}.html", "nnn"),
        ("unpack {}", "nnn"),
    ],
)
def test_a_name_that_is_too_long_for_a_file_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, what: str
) -> None:
    make_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reader.py").write_text(f"def right(request): ...\n{'n' * 300} = right\n")
    assert main(words.replace("{}", "n" * 300).split()) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: {what}") and "is too long for" in error and len(error) < 120
    assert hint.startswith("hint: choose a shorter one")


def test_a_folder_that_is_called_like_a_benchmark_never_counts_as_it(tmp_path: Path) -> None:
    alike = [
        "docvqa",
        "DocVQA",
        "sample-pages",
        "d\u043ecvqa",
        "\u0501\u043e\u0441\u0475\u051b\u0430",
        "D0C-VQ\u0391",
        "\uff44oc\u0301vqa",
    ]
    names = {name: f"own-{name}" for name in alike} | {
        "letters": "letters",
        "\u0442\u0435\u043a\u0441\u0442 OCR": "\u0442\u0435\u043a\u0441\u0442 OCR",
    }
    assert {name: benchmark_id(f"{tmp_path}/{name}") for name in names} == names
    answers = {f"p{number}": "alpha" for number in range(6)}
    run = loupe.score(str(make_folder(tmp_path, name="docvqa")), answers, runs=tmp_path / "runs", name="model")
    assert run.path == tmp_path / "runs/model/own-docvqa" and run.benchmark == "own-docvqa"
    assert run.signature.startswith("own-docvqa:1|")
    # A stranger writes the id that he likes.
    write_pack(RunFolder.open(run.path), tmp_path / "honest.tar.gz", with_truth=True)
    for name in ("run.json", "result.json"):
        file = run.path / name
        file.write_text(file.read_text().replace("own-docvqa", "docvqa"))
    shutil.copytree(run.path, tmp_path / "runs/model/docvqa")
    forged = RunFolder.open(tmp_path / "runs/model/docvqa")
    assert json.loads((forged.path / "run.json").read_text())["benchmark_id"] == "docvqa"
    assert describe(forged)["benchmark"] == "own-docvqa@1"
    stored = forged.stored_result()
    assert stored and stored.benchmark == "own-docvqa" and stored.signature == forged.info.signature
    again = loupe.Run(forged.path)
    assert again.benchmark == "own-docvqa"
    assert not finished_runs(tmp_path / "runs", "model", "docvqa", "1")
    with pytest.raises(UsageError, match="is a run of own-docvqa@1, not of docvqa@1"):
        checked_run(forged, "docvqa", "1")
    write_pack(forged, tmp_path / "pack.tar.gz", with_truth=True)
    there = unpack(tmp_path / "pack.tar.gz", tmp_path / "there")
    assert there.path.name == "own-docvqa" and describe(there)["benchmark"] == "own-docvqa@1"
    assert unpack(tmp_path / "pack.tar.gz", tmp_path / "there", again=True).path == there.path


def test_a_folder_with_the_title_of_a_benchmark_is_told_apart(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "DocVQA"\n')
    run = loupe.score(str(folder), {"p0": "alpha"}, runs=tmp_path / "runs", name="model")
    (group,) = group_runs([run.path], Group)
    assert group.title == "own-DocVQA"


@pytest.mark.parametrize("path", ["./docvqa", "docvqa/", "{}/docvqa"])
def test_a_path_to_a_folder_is_scored_as_that_folder(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(tmp_path, name="docvqa")
    answers = tmp_path / "answers"
    answers.mkdir()
    (answers / "p0.txt").write_text("alpha")
    with contextlib.suppress(SystemExit):
        main(["score", path.format(tmp_path), "answers"])
    assert Path("runs/answers/own-docvqa/result.json").is_file()
