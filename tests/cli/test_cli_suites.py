"""`loupe run --suite`: a list of benchmarks with one command, one table; nothing missing goes unnamed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.registry import benchmark_ids
from loupe.cli.shared.suite_files import entries_of, find_suite
from loupe.cli.shared.suites import _has_samples, _hint
from loupe.errors import LoupeError, UsageError
from tests.support.command_line import READER, complaint, loupe
from tests.support.synthetic import write_prepared

#: The column of both KIE data sets together.
KIE = "kie mean ↑"
CORE_HERE = ("ocrbench", "unimer_test", "pubtabnet", "nanonets_kie", "handwritten_forms")
ENGINE = ("-e", "python:reader.py:right")
BROKEN = """
def sometimes_broken(request):
    if request.id.endswith("1"):
        raise EngineError("smudged")
    return "something"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with `reader.py` and, in `data`, three samples for each core benchmark that there is."""
    for ident in CORE_HERE:
        write_prepared(ident, tmp_path / "data" / ident, 3)
    (tmp_path / "reader.py").write_text(READER + BROKEN)
    return tmp_path


def single(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns of the table that are of one benchmark."""
    return [column for column in document["table"]["columns"] if not column["name"].startswith("kie")]


def suite_benchmarks(name: str) -> list[str]:
    """The benchmarks of a suite by name, in their order."""
    return [entry.benchmark for entry in entries_of(find_suite(name).benchmarks)]


def test_core_is_what_the_design_says_and_full_holds_every_installed_benchmark() -> None:
    assert suite_benchmarks("core") == ["ocrbench", "omnidocbench@1.5", *CORE_HERE[1:]]
    full = suite_benchmarks("full")
    assert {name.partition("@")[0] for name in full} == set(benchmark_ids()) and len(full) == len(set(full))
    assert {"omnidocbench@1.5", "omnidocbench@1.6"} < set(full)


def test_an_unknown_suite_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="no suite 'cor'") as caught:
        suite_benchmarks("cor")
    assert str(caught.value.hint).startswith("suites: core, eight, full")


def test_missing_data_is_named_and_nothing_is_run(here: Path) -> None:
    done = loupe("run", "--suite", "core", *ENGINE, "--data", "data/ocrbench", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: 6 of 6 benchmarks of suite 'core' cannot be read here:" in done.stderr
    for ident in CORE_HERE:
        assert f"  {ident}: " in done.stderr
    assert "hint: download it: loupe data get ocrbench " in done.stderr
    assert "--skip-missing to leave them out" in done.stderr
    assert not (here / "runs").exists()


def test_skip_missing_names_what_it_skips_and_runs_the_rest_into_one_file_and_one_table(here: Path) -> None:
    words = ["run", "--suite", "core", "--skip-missing", *ENGINE, "-e", "python:reader.py:sometimes_broken"]
    done = loupe(*words, "--plain", cwd=here, env={"LOUPE_DATA": str(here / "data")})
    assert done.returncode == 0, done.stderr
    document = json.loads((here / "runs/results-latest.json").read_text())
    ran = [name for name in suite_benchmarks("core") if name not in document["skipped"]]
    assert set(CORE_HERE) <= set(ran) and document["failed"] == {}
    assert all(f"skipped {name}: " in done.stderr for name in document["skipped"])
    header, right, broken, *_rest = done.stdout.splitlines()
    assert [cell.partition("@")[0] for cell in header.split("\t")] == [
        "engine",
        *(n.partition("@")[0] for n in ran),
        KIE,
    ]
    assert right.split("\t")[0] == "python-reader.py_right" and "failed" not in right
    assert all(cell.endswith("1 of 3 failed") for cell in broken.split("\t")[1:-1])
    assert "# more than 5 % failed" in done.stdout and "saved in runs/results-20" in done.stdout
    assert len(document["results"]) == 2 * len(ran)
    assert {"measures", "signature", "run"} <= document["results"][0].keys()
    rows = document["table"]["rows"]
    assert [row["engine"] for row in rows] == ["python-reader.py_right", "python-reader.py_sometimes_broken"]
    cell = rows[1]["cells"][document["table"]["columns"][0]["name"]]
    assert (cell["failed"], cell["total"]) == (1, 3) and set(cell["headline"]) == {
        "value",
        "low",
        "high",
        "n",
        "few_carry_error",
    }


def test_skip_missing_skips_a_benchmark_whose_pages_are_not_there_unless_answers_exist(here: Path) -> None:
    shutil.rmtree(here / "data" / "ocrbench" / "images")
    words = ["run", "--suite", "core", "--skip-missing", "--data", "data", "--limit", "1", "--json"]
    done = loupe(*words, *ENGINE, cwd=here)
    assert done.returncode == 0, done.stderr
    skipped = json.loads(done.stdout)["skipped"]
    assert skipped["ocrbench"].startswith("no page image found, not even ") and "pubtabnet" not in skipped
    (here / "answers.jsonl").write_text('{"id": "none", "text": ""}')
    done = loupe(*words, "-e", "predictions:answers.jsonl", cwd=here)
    assert "ocrbench" not in json.loads(done.stdout)["skipped"]


def test_without_any_data_skip_missing_names_what_brings_it_and_not_itself(here: Path) -> None:
    (here / "empty").mkdir()
    done = loupe("run", "--suite", "core", "--skip-missing", *ENGINE, "--data", "empty", cwd=here)
    assert done.returncode == 2
    assert "hint: download it: loupe data get ocrbench omnidocbench" in done.stderr
    assert "leave them out" not in done.stderr


def test_data_names_a_folder_with_one_folder_for_each_benchmark_and_json_prints_the_file(here: Path) -> None:
    words = ["run", "--suite", "core", "--skip-missing", *ENGINE, "--data", "data", "--limit", "1"]
    done = loupe(*words, "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document == json.loads((here / "runs/results-latest.json").read_text())
    assert {column["samples"] for column in single(document)} == {1}


def test_a_second_run_asks_nothing_again(here: Path) -> None:
    words = ["run", "--suite", "core", "--skip-missing", *ENGINE, "--data", "data", "-j", "1"]
    loupe(*words, cwd=here)
    stored = here / "runs/python-reader.py_right/ocrbench/predictions.jsonl"
    before = stored.read_bytes()
    assert loupe(*words, cwd=here).returncode == 0
    assert stored.read_bytes() == before


def test_an_engine_that_breaks_is_named_and_the_next_one_goes_on(here: Path) -> None:
    words = ["run", "--suite", "core", "--skip-missing", "--engines", "python:reader.py:nope,python:reader.py:right"]
    done = loupe(*words, "--data", "data", "--json", cwd=here)
    assert done.returncode in (2, 4) and "error: python-reader.py_nope on ocrbench: " in done.stderr
    document = json.loads(done.stdout)
    assert all(name.startswith("python-reader.py_nope on ") for name in document["failed"])
    assert len(document["failed"]) == len(document["results"]) == len(single(document))


def test_strict_ends_with_3_where_a_sample_failed(here: Path) -> None:
    words = ["run", "--suite", "core", "--skip-missing", "-e", "python:reader.py:sometimes_broken", "--data", "data"]
    assert loupe(*words, "--strict", cwd=here).returncode == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--suite", "core", "sample_pages"), "name benchmarks or --suite, not both"),
        (("sample_pages", "--skip-missing"), "--skip-missing goes with several benchmarks"),
        (("--suite", "core", "--fail-under", "90"), "--fail-under goes with a single benchmark only"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = loupe("run", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint(done)[0] == message


def test_a_missing_copy_of_a_data_set_names_the_command_that_fetches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_DATA", "nowhere")
    entries = [entry for entry in entries_of(find_suite("eight").benchmarks) if entry.benchmark == "unimer_test"]
    missing: dict[str, LoupeError] = {}
    assert not _has_samples(entries[0], missing, pages=True)
    assert _hint(missing, skip=False) == "download it: loupe data get unimer_test --source parquet"
