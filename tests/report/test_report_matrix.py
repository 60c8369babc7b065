"""Many runs as one table: what may stand in one column, and what a cell must say."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from loupe.results import matrix
from loupe.results.matrix import Cell, cell_text, make_matrix, matrix_sections
from loupe.results.scored_here import result_of
from loupe.results.tables.terminal import column_widths, fitted, tab_separated
from loupe.runs.drawn import Drawn
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo
from loupe.types import Estimate, Result
from tests.support.command_line import loupe, make_folder

RUNS = ("a/toy", "b/toy", "c/toy", "d/other", "e/toy")

RESULT = Result(
    benchmark="toy",
    version="1",
    engine="a",
    signature="toy:1",
    headline="similarity",
    measures={"similarity": Estimate(value=0.875, low=0.84, high=0.9, n=40)},
    directions={"similarity": True},
    units={"similarity": "fraction"},
    total=40,
    outcomes={"ok": 40},
)


def a_run(root: Path, engine: str, benchmark: str = "toy", *, result: Result | None = RESULT, **facts: object) -> None:
    folder = root / engine / benchmark
    folder.mkdir(parents=True)
    known = {"data_digest": "3f2a9c1e77", "total": 40, **facts}
    info = RunInfo(benchmark=benchmark, benchmark_id=benchmark, version="1", engine=engine, profile={}, **known)  # type: ignore[arg-type]
    (folder / "run.json").write_bytes(msgspec.json.encode(info))
    if result is not None:
        own = {"benchmark": benchmark, "version": info.version, "engine": engine, "signature": info.signature}
        RunFolder.open(folder).write_result(msgspec.structs.replace(result, **own))


def lines(root: Path) -> list[str]:
    folders = [RunFolder.open(file.parent) for file in sorted(root.glob("*/*/run.json"))]
    return list(tab_separated(matrix_sections(make_matrix(folders))))


def test_each_result_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[RunFolder] = []
    monkeypatch.setattr(matrix, "result_of", lambda folder: (read.append(folder), result_of(folder))[1])
    a_run(tmp_path, "a")
    a_run(tmp_path, "b", "other")
    assert len(lines(tmp_path)) == 3 and [folder.info.engine for folder in read] == ["a", "b"]


def test_engines_are_rows_benchmarks_are_columns_and_what_was_not_run_is_a_dash(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    a_run(tmp_path, "b")
    a_run(tmp_path, "b", "other")
    assert lines(tmp_path) == [
        "engine\ttoy@1 similarity ↑\tother@1 similarity ↑",
        "a\t87.50 % ± 3.00\t–",
        "b\t87.50 % ± 3.00\t87.50 % ± 3.00",
    ]


@pytest.mark.parametrize(
    "facts", [{"data_digest": "00"}, {"options": {"variant": "strict"}}, {"total": 10}], ids=["data", "options", "n"]
)
def test_numbers_that_must_not_be_compared_stand_in_columns_of_their_own(
    facts: dict[str, object], tmp_path: Path
) -> None:
    a_run(tmp_path, "a")
    a_run(tmp_path, "b", **facts)
    header, first, second = lines(tmp_path)
    assert len(set(header.split("\t"))) == 3
    assert (first.split("\t")[2], second.split("\t")[1]) == ("–", "–")


def test_a_cell_says_how_many_samples_failed_and_too_many_are_said_again_in_red(tmp_path: Path) -> None:
    a_run(tmp_path, "a", result=msgspec.structs.replace(RESULT, outcomes={"ok": 37, "timeout": 2, "error": 1}))
    folders = [RunFolder.open(tmp_path / "a/toy")]
    table, alarm = matrix_sections(make_matrix(folders))
    assert table.rows == [["a", "87.50 % ± 3.00, 3 of 40 failed"]]
    assert alarm.alarm and alarm.rows == [("a", "toy@1", "3 of 40", "7.5 %")]


def test_a_run_without_scores_and_a_partial_one_say_so(tmp_path: Path) -> None:
    a_run(tmp_path, "a", result=None)
    a_run(tmp_path, "b", stopped="interrupted")
    assert [line.split("\t")[1] for line in lines(tmp_path)[1:]] == ["not scored", "87.50 % ± 3.00, partial"]


def test_a_lopsided_interval_is_shown_by_its_ends() -> None:
    cell = Cell(run="", signature="", headline=Estimate(value=0.0, low=0.0, high=0.4, n=3))
    assert cell_text(cell, "fraction") == "0.00 % [0.00 … 40.00]"


def test_two_runs_of_one_engine_in_one_column_both_stay(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    a_run(tmp_path, "copy")
    text = (tmp_path / "copy/toy/run.json").read_text().replace('"engine":"copy"', '"engine":"a"')
    (tmp_path / "copy/toy/run.json").write_text(text)
    RunFolder.open(tmp_path / "copy/toy").write_result(msgspec.structs.replace(RESULT, signature=""))
    assert [line.split("\t")[0] for line in lines(tmp_path)[1:]] == ["a", f"a ({tmp_path / 'copy/toy'})"]


def test_a_table_wider_than_the_terminal_becomes_several_and_loses_no_column(tmp_path: Path) -> None:
    for number in range(9):
        a_run(tmp_path, "a", f"benchmark_number_{number}")
    matrix = make_matrix([RunFolder.open(file.parent) for file in sorted(tmp_path.glob("*/*/run.json"))])
    narrow = list(fitted(matrix_sections(matrix), 100))
    assert len(narrow) > 1 and all(sum(column_widths(section, 100)) <= 100 for section in narrow)
    assert sum(len(section.header) - 1 for section in narrow) == 9


def test_compare_without_arguments_shows_every_run_here_and_leaves_out_damaged_ones_by_name(tmp_path: Path) -> None:
    make_folder(tmp_path)
    make_folder(tmp_path, name="others")
    for folder in ("mydocs", "others"):
        assert loupe("run", folder, "-e", "python:reader.py:right", cwd=tmp_path).returncode == 0
    damaged = tmp_path / "runs/broken/mydocs"
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{")
    done = loupe("compare", "--plain", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    header, row = done.stdout.splitlines()
    assert [cell.split(" ")[0] for cell in header.split("\t")] == ["engine", "mydocs@1", "others@1"]
    assert row.startswith("python-reader.py_right\t100.00 %")
    assert "left out: runs/broken/mydocs/run.json" in done.stderr


def test_compare_without_arguments_as_json_is_the_same_table_with_intervals_and_signatures(tmp_path: Path) -> None:
    make_folder(tmp_path)
    loupe("run", "mydocs", "-e", "python:reader.py:sometimes", "--runs", "elsewhere", cwd=tmp_path)
    done = loupe("compare", "--runs", "elsewhere", "--json", cwd=tmp_path)
    table = json.loads(done.stdout)
    assert [column["name"] for column in table["columns"]] == ["mydocs@1"]
    (cell,) = table["rows"][0]["cells"].values()
    assert (cell["failed"], cell["total"]) == (1, 6) and cell["signature"].startswith("mydocs:1|n:6|")
    assert set(cell["headline"]) == {"value", "low", "high", "n", "few_carry_error"}


def test_compare_where_nothing_was_run_says_so(tmp_path: Path) -> None:
    done = loupe("compare", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "") and "no run below runs" in done.stderr


def test_one_number_stands_beside_the_benchmarks_that_form_it_where_an_engine_has_them_all(tmp_path: Path) -> None:
    other = msgspec.structs.replace(RESULT, measures={"similarity": Estimate(value=0.625, low=0.545, high=0.665, n=8)})
    for engine in ("a", "b"):
        a_run(tmp_path, engine, "nanonets_kie")
    a_run(tmp_path, "a", "handwritten_forms", result=other)
    assert lines(tmp_path) == [
        "engine\thandwritten_forms@1 similarity ↑\tnanonets_kie@1 similarity ↑\tkie mean ↑",
        "a\t62.50 % ± 6.00\t87.50 % ± 3.00\t75.00 % ± 3.36",
        "b\t–\t87.50 % ± 3.00\t–",
    ]


def test_one_number_of_parts_says_how_many_samples_it_is_made_of(tmp_path: Path) -> None:
    a_run(tmp_path, "a", "nanonets_kie", total=5, limit=5)
    a_run(tmp_path, "a", "handwritten_forms", total=89, limit=100)
    header = lines(tmp_path)[0].split("\t")
    assert header[3] == "kie n:5+89 mean ↑"


def test_one_number_is_not_made_of_runs_under_other_options_or_of_one_benchmark(tmp_path: Path) -> None:
    a_run(tmp_path, "a", "nanonets_kie")
    assert "kie mean" not in "\n".join(lines(tmp_path))
    a_run(tmp_path, "a", "handwritten_forms", options={"variant": "strict_json"})
    assert "kie mean" not in "\n".join(lines(tmp_path))


def test_columns_of_one_benchmark_are_told_apart_by_what_differs_and_a_part_says_so(tmp_path: Path) -> None:
    a_run(tmp_path, "a", whole=40)
    a_run(tmp_path, "b", total=2, limit=2, whole=40)
    a_run(tmp_path, "c", total=4, sample=Drawn(count=4, seed=7, last="f"), whole=40)
    a_run(tmp_path, "d", "other", total=4, sample=Drawn(count=4, last="f"), whole=19)
    a_run(tmp_path, "e", total=12)
    names = [column.name for column in make_matrix(RunFolder.open(tmp_path / run) for run in RUNS).columns]
    assert names == [
        "toy@1 n:40",
        "toy@1, first 2 of 40",
        "toy@1, 4 of 40 at random (seed 7)",
        "other@1, 4 of 19 at random",
        "toy@1 n:12",
    ]


def test_an_engine_without_a_run_in_a_table_has_no_row_there(tmp_path: Path) -> None:
    a_run(tmp_path, "a", "benchmark_of_a")
    a_run(tmp_path, "b", "benchmark_of_b")
    matrix = make_matrix([RunFolder.open(file.parent) for file in sorted(tmp_path.glob("*/*/run.json"))])
    narrow = list(fitted(matrix_sections(matrix), 40))
    assert [[row[0] for row in section.rows] for section in narrow] == [["a"], ["b"]]


def test_a_limited_run_says_what_it_is_of_in_every_table(tmp_path: Path) -> None:
    make_folder(tmp_path)
    for engine in ("right", "sometimes"):
        done = loupe("run", "mydocs", "-e", f"python:reader.py:{engine}", "--limit", "2", "--plain", cwd=tmp_path)
        assert "on mydocs@1, first 2 of 6\n" in done.stdout, done.stderr
    drawn = loupe("run", "mydocs", "-e", "python:reader.py:right", "--sample", "3", "--name", "drawn", cwd=tmp_path)
    assert "on mydocs@1, 3 of 6 at random" in drawn.stdout
    runs = sorted(str(file.parent) for file in (tmp_path / "runs").glob("python*/*/result.json"))
    assert json.loads((tmp_path / runs[0] / "result.json").read_text())["part"] == "first 2 of 6"
    assert loupe("compare", *runs, "--plain", cwd=tmp_path).stdout.startswith("# mydocs@1, first 2 of 6\n")
    assert loupe("report", *runs, "-o", "report.html", cwd=tmp_path).returncode == 0
    assert ">My texts, first 2 of 6</h1>" in (tmp_path / "report.html").read_text()
