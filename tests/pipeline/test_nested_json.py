"""JSON of strangers that is nested too deeply to be read, or has another type than it should: a clear line, no bug."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import loupe, make_folder

DEEP = "[" * 100_000
RIGHT = ("-e", "python:reader.py:right")
RUN = Path("runs/python-reader.py_right/mydocs")
READERS = (("runs",), ("report", str(RUN), "-o", "out.html"), ("score", str(RUN)), ("compare", str(RUN), str(RUN)))
READERS += (("export", str(RUN)),)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("here")
    make_folder(here, count=2)
    assert loupe("run", "mydocs", *RIGHT, "-j", "1", cwd=here).returncode == 0
    return here


def every_reader_names_it(run: Path) -> None:
    for words in READERS:
        done = loupe(*words, cwd=run)
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr, (words, done.stderr)


@pytest.mark.parametrize("name", ["run.json", "result.json", "predictions.jsonl", "scores.jsonl"])
def test_a_record_that_is_too_deep_is_named_by_every_reader(run: Path, name: str) -> None:
    file = run / RUN / name
    kept = file.read_bytes()
    record = json.loads(kept.splitlines()[0]) if name.endswith("l") else {}
    file.write_text(
        json.dumps(record | {"sample": "p0", "class": "ok", "extra": "DEEP"}).replace('"DEEP"', DEEP) + "\n"
    )
    try:
        every_reader_names_it(run)
    finally:
        file.write_bytes(kept)


@pytest.mark.parametrize("field", ["text", "scores", "response", "attempt"])
def test_a_record_with_a_value_of_another_type_is_named_by_every_reader(run: Path, field: str) -> None:
    name = "scores.jsonl" if field == "scores" else "predictions.jsonl"
    file = run / RUN / name
    kept = file.read_bytes()
    record = json.loads(kept.splitlines()[0])
    file.write_text(json.dumps(record | {field: 5 if field != "attempt" else "x"}) + "\n")
    try:
        every_reader_names_it(run)
    finally:
        file.write_bytes(kept)


@pytest.mark.parametrize("name", ["answers.json", "answers.jsonl"])
def test_answers_that_are_too_deep_are_named(run: Path, name: str) -> None:
    (run / name).write_text(DEEP + "\n")
    for words in (("score", "mydocs", name), ("infer", "mydocs", "-e", f"predictions:{name}")):
        done = loupe(*words, cwd=run)
        assert done.returncode == 2 and f"error: {name}" in done.stderr, done.stderr


@pytest.mark.parametrize(("table", "parts"), [("fields", 300), ("fields", 5000), ("engines", 5000)])
def test_settings_that_are_too_deep_are_named(tmp_path: Path, table: str, parts: int) -> None:
    folder = make_folder(tmp_path)
    (folder / "loupe.toml").write_text(table + ".a" * parts + " = 1\n")
    for words in (("bench", "check", "."), ("engine", "list"), ("engine", "show", "a")):
        done = loupe(*words, cwd=folder)
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr, (words, done.stderr)


def test_runs_whose_headline_is_none_of_their_measures_are_compared_by_what_they_have(run: Path) -> None:
    assert loupe("run", "mydocs", *RIGHT, "--name", "other", "-j", "1", cwd=run).returncode == 0
    for folder in (RUN, Path("runs/other/mydocs")):
        file = run / folder / "result.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"headline": "strange"}))
    done = loupe("compare", str(RUN), "runs/other/mydocs", cwd=run)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr
