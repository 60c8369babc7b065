"""`loupe compare`, `report`, `demo`, `doctor`, `serve`, `engine` and `bench` as a user types them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from loupe.cli import demo, main
from loupe.runs.folder import RunFolder
from tests.support.command_line import complaint, loupe, make_folder, trusted
from tests.support.pages import write_pdf

RUNS = {name: f"runs/python-reader.py_{name}/mydocs" for name in ("right", "wrong", "sometimes")}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs; tests only look at it."""
    root = tmp_path_factory.mktemp("there")
    make_folder(root, count=12)
    engines = ",".join(f"python:reader.py:{name}" for name in RUNS)
    done = loupe("run", "mydocs", "--engines", engines, cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def test_compare_ranks_runs_and_shows_paired_differences(there: Path) -> None:
    done = loupe("compare", *RUNS.values(), "--json", cwd=there)
    compared = json.loads(done.stdout)
    assert done.returncode == 0
    assert (compared["runs"][0]["engine"], compared["runs"][0]["rank"]) == ("python-reader.py_right", 1)
    assert compared["baseline"] == RUNS["right"]
    pair = next(pair for pair in compared["pairs"] if pair["run"] == RUNS["wrong"])
    found = pair["measures"]["text_similarity"]
    assert found["difference"] == pytest.approx(found["value_a"] - found["value_b"])
    assert found["low"] <= found["difference"] <= found["high"] < 0 and found["p_holm"] < 0.05


def test_compare_says_in_words_what_is_better(there: Path) -> None:
    done = loupe("compare", RUNS["wrong"], RUNS["right"], "--plain", cwd=there)
    line = next(line for line in done.stdout.splitlines() if line.startswith("text_similarity\t"))
    assert line.endswith("\tbetter")
    assert "# python-reader.py_right minus python-reader.py_wrong, on samples read by both: 12 samples" in done.stdout


def test_compare_sees_no_difference_where_one_run_was_limited_in_the_middle_of_a_document(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    letters = "abcdefghij"
    rows = [
        {"id": f"{document}{page}", "group": document, "text": letters, "reference": letters[: 10 - 3 * page]}
        for document in "xyz"
        for page in range(4)
    ]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=tmp_path)
    loupe("run", "mydocs", "-e", "python:reader.py:right", "--limit", "10", "--name", "ten", cwd=tmp_path)
    done = loupe("compare", "runs/ten/mydocs", RUNS["right"], "--json", cwd=tmp_path)
    compared = json.loads(done.stdout)
    found = compared["pairs"][0]["measures"]["text_similarity"]
    assert (found["difference"], found["value_a"]) == (0.0, found["value_b"])
    assert [run["rank"] for run in compared["runs"]] == [None, None]


def test_compare_shows_failed_samples_beside_the_rank(there: Path) -> None:
    shown = loupe("compare", RUNS["right"], RUNS["sometimes"], "--plain", cwd=there).stdout
    assert "1 of 12" in shown
    assert "read by both: 11 samples, and 1 that failed and counts as empty\n" in shown


def test_compare_names_every_other_part_that_differs(there: Path) -> None:
    words = ("run", "mydocs", "-e", "python:reader.py:right", "--limit", "6", "--prompt", "Read!", "--name", "six")
    loupe(*words, cwd=there)
    done = loupe("compare", RUNS["right"], "runs/six/mydocs", cwd=there)
    assert done.returncode == 0
    assert "the runs differ in n: 12 | 6\n" in done.stderr and "the runs differ in prompt: " in done.stderr
    assert "on samples read by both: 6 samples\n" in done.stdout


def test_compare_refuses_other_data_and_another_benchmark_and_names_the_parts(there: Path) -> None:
    (there / "other").mkdir()
    make_folder(there / "other", count=3)
    make_folder(there, name="letters", count=3)
    loupe("run", "other/mydocs", "-e", "python:reader.py:right", "--runs", "others", cwd=there)
    loupe("run", "letters", "-e", "python:reader.py:right", "--runs", "others", cwd=there)
    done = loupe("compare", RUNS["right"], "others/python-reader.py_right/mydocs", cwd=there)
    assert done.returncode == 2
    assert "cannot be compared; they differ in data (" in complaint(done)[0]
    done = loupe("compare", RUNS["right"], "others/python-reader.py_right/letters", cwd=there)
    assert done.returncode == 2
    assert "they differ in benchmark (mydocs | letters)" in complaint(done)[0]


def test_compare_wants_scores(there: Path) -> None:
    loupe("infer", "mydocs", "-e", "python:reader.py:right", "--name", "unscored", cwd=there)
    done = loupe("compare", RUNS["right"], "runs/unscored/mydocs", cwd=there)
    assert (done.returncode, complaint(done)[1]) == (2, "score it: loupe score runs/unscored/mydocs")


def test_report_writes_one_file_for_all_runs_below_a_root(there: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.html"
    done = loupe("report", RUNS["right"], RUNS["wrong"], "-o", target, "--json", cwd=there)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["runs"] == [RUNS["right"], RUNS["wrong"]] and facts["bytes"] == target.stat().st_size > 0


def test_one_damaged_run_does_not_hide_the_others(there: Path, tmp_path: Path) -> None:
    shutil.copytree(there / "runs", tmp_path / "runs")
    (tmp_path / RUNS["wrong"] / "run.json").write_text("{")
    (tmp_path / RUNS["sometimes"] / "result.json").write_text("{")
    listed = loupe("runs", "--plain", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    lines = {line.split("\t")[0]: line for line in listed.stdout.splitlines()}
    assert "text_similarity 100.00 %" in lines[RUNS["right"]]
    assert "\tdamaged: " in lines[RUNS["wrong"]] and "\tdamaged: " in lines[RUNS["sometimes"]]
    shutil.rmtree(tmp_path / RUNS["sometimes"])
    done = loupe("report", "runs", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"left out: {RUNS['wrong']}/run.json: " in done.stderr


def test_doctor_is_content_here_and_says_what_would_bring_the_rest(tmp_path: Path) -> None:
    done = loupe("doctor", "--json", cwd=tmp_path, env={"PATH": str(tmp_path)})
    found = json.loads(done.stdout)
    tesseract = next(check for check in found["checks"] if check["name"] == "tesseract")
    assert (done.returncode, found["ok"], tesseract["here"]) == (0, True, False)
    assert "install tesseract" in tesseract["fix"]
    assert {"core", "extra", "tool", "server", "folder"} <= {check["part"] for check in found["checks"]}


def test_doctor_ends_with_4_where_runs_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    done = loupe("doctor", "--plain", cwd=tmp_path)
    assert done.returncode == 4
    assert "required checks failed: runs" in done.stderr and "how to install the rest" in done.stdout


#: Ends a process that looks for a name or connects to anything but a file.
NO_NETWORK = """
import os, sys

def hook(event, arguments):
    if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        sys.stderr.write(f"network: {event} {arguments}")
        os._exit(99)

sys.addaudithook(hook)
"""


def test_demo_compares_two_that_can_read_without_tesseract_and_without_network(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_NETWORK)
    alone = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path / "site")}
    done = loupe("demo", "--limit", "1", "--plain", cwd=tmp_path, env=alone)
    assert done.returncode == 0, done.stderr
    assert "your own pages: loupe run ./mydocs -e rapidocr " in done.stderr
    assert "tesseract: skipped, it comes with: apt-get install tesseract-ocr" in done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    ranked = {row[1]: float(row[2].split()[0]) for row in rows if len(row) > 8 and row[0] != "rank"}
    assert list(ranked) == ["rapidocr", "rapidocr-300px"], done.stdout
    # Both read, and one reads better: nothing is compared with an engine that cannot.
    assert 80 < ranked["rapidocr-300px"] < ranked["rapidocr"], done.stdout
    assert "# rapidocr-300px minus rapidocr, on samples read by both: 1 sample" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("words", [[], ["--limit", "2", "--prompt", "Read."]])
def test_demo_beside_a_run_of_ones_own_makes_its_own(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["run", "sample_pages", "-e", "pdf_text", *words, "--plain"])
    before = Path("runs/pdf_text/sample_pages/run.json").read_bytes()
    capfd.readouterr()
    for _ in range(2):
        folders: list[RunFolder] = []
        demo.read("pdf_text", {}, folders, runs=Path("runs"), limit=2, plain=True)
        assert "--name" not in capfd.readouterr().err
        assert [str(folder.path) for folder in folders] == ["runs/pdf_text-demo-2/sample_pages"]
        assert Path("runs/pdf_text/sample_pages/run.json").read_bytes() == before


def test_engine_list_shows_profiles_and_kinds(tmp_path: Path) -> None:
    rows = {row["engine"]: row for row in json.loads(loupe("engine", "list", "--json", cwd=tmp_path).stdout)}
    assert rows["rapidocr"]["from"] == "loupe" and rows["openai"]["from"] == "kind"


def test_engine_show_names_every_setting_but_no_key(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text('[engines.mine]\nkind = "openai"\nmodel = "m"\n')
    trusted(tmp_path / "loupe.toml")
    facts = json.loads(loupe("engine", "show", "mine", "--json", cwd=tmp_path, env={"LOUPE_API_KEY": "sk-1"}).stdout)
    assert (facts["engine"], facts["from"], facts["settings"]["model"]) == ("mine", "loupe.toml", "m")
    assert "sk-1" not in json.dumps(facts)


def test_engine_show_names_an_unknown_key_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text('[engines.mine]\nkind = "openai"\nmodle = "m"\n')
    trusted(tmp_path / "loupe.toml")
    done = loupe("engine", "show", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: loupe.toml [engines.mine]: unknown key 'modle'; did you mean 'model'?")


def test_engine_test_reads_a_page_that_the_engine_can_read(tmp_path: Path) -> None:
    done = loupe("engine", "test", "pdf_text", cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout) > 100
    assert "pdf_text: opened in" in done.stderr and "characters" in done.stderr


def test_engine_test_reads_a_named_page_of_a_pdf_and_gives_its_seconds_as_json(tmp_path: Path) -> None:
    write_pdf(tmp_path / "two.pdf", "First", "Second")
    done = loupe("engine", "test", "pdf_text", "--image", "two.pdf#page=2", "--json", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["text"] == "Second"
    assert 0 < answer["seconds"] < 60 and 0 < answer["opening_seconds"] < 60
    done = loupe("engine", "test", "pdf_text", "--image", "two.pdf#page=3", cwd=tmp_path)
    assert done.returncode == 2 and "has no page 3" in done.stderr


def test_bench_list_and_show_as_json(tmp_path: Path) -> None:
    rows = json.loads(loupe("bench", "list", "--json", cwd=tmp_path).stdout)
    assert "sample_pages" in {row["id"] for row in rows}
    shown = json.loads(loupe("bench", "show", "sample_pages", "--json", cwd=tmp_path).stdout)
    assert shown == next(row for row in rows if row["id"] == "sample_pages")
