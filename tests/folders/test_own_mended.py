"""References of a folder of one's own that are mended after a run: its answers stand, all else is refused as ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from loupe.errors import RunError
from loupe.pipeline import score_run
from loupe.runs.folder import RunFolder
from tests.support.command_line import loupe, make_folder

READER = """
def read(request):
    with open("asked.txt", "a") as file:
        file.write(request.id + "\\n")
    return f"page {request.id}"
"""
#: Somebody reviews the folder while the first page is being read.
CHANGE = """
from pathlib import Path

def at(request, changed):
    file = Path("docs/samples.jsonl")
    if request.id == "0":
        text = file.read_text()
        old, new = {
            "reference": ('"wrong"', '"page 5"'),
            "prompt": ('"id": "1",', '"id": "1", "prompt": "Read it backwards.",'),
        }[changed]
        assert old in text
        Path("new").write_text(text.replace(old, new))
        Path("new").replace(file)
"""
RUN = "runs/python-reader.py_read/docs"
COMMAND = ("run", "docs", "-e", "python:reader.py:read", "-j", "1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of six pages, one of whose references is wrong, read by an engine that is always right."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "docs/loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    write(tmp_path, wrong="5")
    done = loupe(*COMMAND, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def write(home: Path, *, wrong: str = "", first: str = "0", prompt: str = "", shade: int = 255) -> None:
    Image.new("L", (20, 20), shade).save(home / "docs/a.png")
    rows = [
        {"id": ident, "image": "a.png", "reference": "wrong" if ident == wrong else f"page {ident}"}
        for ident in (first, *"12345")
    ]
    rows[0] |= {"prompt": prompt} if prompt else {}
    (home / "docs/samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_answers_are_scored_against_mended_references_and_run_json_says_which(home: Path) -> None:
    before = RunFolder.open(home / RUN)
    assert (found := before.stored_result()) is not None and found.measures["text_similarity"].value < 1
    write(home)
    done = loupe("score", RUN, cwd=home)
    assert done.returncode == 0 and f"{RUN}: references changed after the run" in done.stderr, done.stderr
    after = RunFolder.open(home / RUN)
    assert (found := after.stored_result()) is not None and found.measures["text_similarity"].value == 1
    assert after.info.truth_digest != before.info.truth_digest and found.signature == after.info.signature
    assert "references changed" not in loupe("score", RUN, cwd=home).stderr
    write(home, wrong="1")
    done = loupe(*COMMAND, cwd=home)
    assert done.returncode == 0 and "references changed" in done.stderr, done.stderr
    assert sorted((home / "asked.txt").read_text().split()) == list("012345")


@pytest.mark.parametrize("settings", ['version = "2"', "ignore_case = true"])
def test_another_version_or_other_rules_of_scoring_are_no_mended_references(home: Path, settings: str) -> None:
    before = (home / RUN / "run.json").read_bytes()
    write(home)
    (home / "docs/loupe.toml").write_text(f'[benchmark]\ntask = "text"\n{settings}\n')
    with pytest.raises(RunError, match="has version"):
        score_run(home / RUN)
    refused = loupe(*COMMAND, cwd=home)
    assert refused.returncode == 2 and "version: 1 in the folder" in refused.stderr, refused.stderr
    assert (home / RUN / "run.json").read_bytes() == before


@pytest.mark.parametrize("changed", ["reference", "prompt"])
def test_what_is_changed_while_the_engine_reads_is_scored_as_it_is_then_or_not_at_all(home: Path, changed: str) -> None:
    reading = READER.replace("    return", f"    __import__('change').at(request, {changed!r})\n    return")
    (home / "reader.py").write_text(reading)
    (home / "change.py").write_text(CHANGE)
    done = loupe(*COMMAND, "--name", "meanwhile", cwd=home)
    folder = RunFolder.open(home / "runs/meanwhile/docs")
    if changed == "prompt":
        assert done.returncode == 2 and "other samples or references" in done.stderr, done.stderr
        assert folder.stored_result() is None and len(folder.prediction_places()) == 6
        return
    assert done.returncode == 0 and "references changed after the run" in done.stderr, done.stderr
    assert (found := folder.stored_result()) is not None and found.measures["text_similarity"].value == 1
    assert found.signature == folder.info.signature and "references changed" not in done.stdout
    assert "references changed" not in loupe("score", "runs/meanwhile/docs", cwd=home).stderr


@pytest.mark.parametrize("change", [{"first": "9"}, {"prompt": "Read backwards."}, {"shade": 0}])
def test_other_samples_questions_or_pages_are_refused_with_a_command_that_works(
    home: Path, change: dict[str, str]
) -> None:
    before = (home / RUN / "run.json").read_bytes(), (home / RUN / "result.json").read_bytes()
    write(home, **change)
    with pytest.raises(RunError, match="other samples or references") as caught:
        score_run(home / RUN)
    assert loupe(*COMMAND, cwd=home).returncode == 2
    assert ((home / RUN / "run.json").read_bytes(), (home / RUN / "result.json").read_bytes()) == before
    command = caught.value.hint.partition("loupe ")[2].replace("NAME", "again").split()
    assert loupe(*command, cwd=home).returncode == 0


def test_truth_that_was_verified_after_a_run_on_drafts_asks_for_no_second_reading(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    file = folder / "samples.jsonl"
    verified = file.read_text().replace('"task"', '"truth": {"status": "verified"}, "task"')
    file.write_text(verified.replace("verified", "draft"))
    words = ("run", "mydocs", "-e", "python:reader.py:right")
    assert loupe(*words, "--allow-unverified", cwd=tmp_path).returncode == 0
    file.write_text(verified)
    refused = loupe(*words, cwd=tmp_path)
    command = "loupe score runs/python-reader.py_right/mydocs -o allow_unverified=false"
    assert refused.returncode == 2 and f"hint: score its answers by the verified truth: {command}\n" in refused.stderr
    assert loupe(*command.split()[1:], cwd=tmp_path).returncode == 0
    again = loupe(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
