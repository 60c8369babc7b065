"""Folders from a stranger in which any file or folder is a link: no command writes, or reads a record, through it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from loupe.cli.shared.top import root
from loupe.errors import LoupeError, UnsafeFileError
from loupe.files.folder import Folder
from loupe.web.review.line_file import LineFile
from tests.support.command_line import complaint, loupe, make_folder

READ = ("run", "mydocs", "-e", "python:reader.py:right")
RUN, OTHER = "runs/python-reader.py_right/mydocs", "runs/python-reader.py_wrong/mydocs"
#: Commands over a run that write into it or read its records.
COMMANDS = (
    READ,
    (*READ, "--redo", "ok"),
    ("score", RUN),
    ("export", RUN),
    ("report", RUN, "-o", "report.html"),
    ("compare", RUN, OTHER),
    ("runs",),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a benchmark and a finished run of it."""
    here = tmp_path_factory.mktemp("finished")
    make_folder(here)
    done = loupe(*READ, "-e", "python:reader.py:wrong", cwd=here)
    assert done.returncode == 0, done.stderr
    return here


def outside_of(here: Path) -> dict[str, str]:
    """Every file of the user's beside the stranger's folder, by what is in it."""
    return {
        str(file.relative_to(here)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(here.rglob("*"))
        if file.is_file()
    }


def planted(finished: Path, here: Path, name: str, victim: Path) -> Path:
    """A copy of the finished folder in which one thing is a link."""
    shutil.copytree(finished, here, symlinks=True)
    place = here / RUN / name
    if place.is_dir():
        shutil.copytree(place, victim, dirs_exist_ok=True)
        shutil.rmtree(place)
    elif place.exists():
        victim.write_bytes(place.read_bytes())
        place.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)
    return place


@pytest.mark.parametrize(
    "name",
    [
        *("run.json", "predictions.jsonl", "scores.jsonl", "result.json", "scored.seal", "run.lock"),
        *("predictions", "predictions/p1.txt", "."),
    ],
)
def test_no_command_writes_through_a_link_in_a_run_folder(tmp_path: Path, finished: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    victim = home / "victim"
    (home / "profile").write_text("precious")
    if name == ".":
        shutil.copytree(finished, tmp_path / "here", symlinks=True)
        shutil.move(tmp_path / "here" / RUN, victim)
        (tmp_path / "here" / RUN).symlink_to(victim)
    else:
        planted(finished, tmp_path / "here", name, victim)
    before = outside_of(home)
    refused = 0
    # Where the folder itself is named, it may be a link, and is worked in.
    for words in COMMANDS if name != "." else [READ]:
        done = loupe(*words, cwd=tmp_path / "here", env={"HOME": str(tmp_path / "empty")})
        assert done.returncode in (0, 2), (words, done.stderr)
        assert outside_of(home) == before, (words, done.stderr)
        if done.returncode == 2:
            assert "is a link to" in done.stderr, (words, done.stderr)
            assert "\nhint: remove the link (rm " in done.stderr
            refused += 1
    assert refused


def test_a_link_to_a_missing_file_makes_none(tmp_path: Path, finished: Path) -> None:
    for number, name in enumerate(("predictions/p1.txt", "run.lock", "scored.seal", "result.json")):
        here = tmp_path / str(number)
        planted(finished, here, name, tmp_path / "start-up file").parent.mkdir(exist_ok=True)
        (tmp_path / "start-up file").unlink()
        for words in ((*READ, "--redo", "ok"), ("export", RUN), ("score", RUN)):
            loupe(*words, cwd=here)
        assert not (tmp_path / "start-up file").exists(), name


def test_a_new_run_is_not_made_through_a_link_of_the_root_of_runs(tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/python-reader.py_right").symlink_to("../elsewhere")
    done = loupe(*READ, cwd=tmp_path)
    assert done.returncode == 2 and "is a link to ../elsewhere" in complaint(done)[0]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_run_behind_a_link_is_named_and_not_read(tmp_path: Path, finished: Path) -> None:
    shutil.copytree(finished, tmp_path / "here")
    (tmp_path / "here/runs/linked").symlink_to(tmp_path / "here/runs/python-reader.py_right")
    done = loupe("runs", cwd=tmp_path / "here")
    assert "python-reader.py_right/mydocs" in done.stdout and "is a link to" in done.stdout


def test_a_new_run_is_private_and_shared_only_where_that_is_asked(tmp_path: Path) -> None:
    make_folder(tmp_path)
    before = os.umask(0o022)
    try:
        loupe(*READ, cwd=tmp_path)
        assert stat.S_IMODE((tmp_path / RUN).stat().st_mode) == 0o700
        loupe(*READ, "--shared", cwd=tmp_path)
        assert stat.S_IMODE((tmp_path / RUN).stat().st_mode) == 0o755
        (tmp_path / RUN).chmod(0o750)
        loupe(*READ, "--redo", "ok", cwd=tmp_path)
        assert stat.S_IMODE((tmp_path / RUN).stat().st_mode) == 0o750, "a folder that is there stays as it is"
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["samples.jsonl", "loupe.toml"])
def test_a_benchmark_folder_is_not_read_through_links(tmp_path: Path, name: str) -> None:
    make_folder(tmp_path)
    file = tmp_path / "mydocs" / name
    shutil.move(file, tmp_path / "victim")
    file.symlink_to(tmp_path / "victim")
    for words in (READ, ("bench", "check", "mydocs"), ("bench", "show", "mydocs")):
        done = loupe(*words, cwd=tmp_path)
        assert done.returncode == 2 and "is a link to" in done.stderr, (words, done.stderr)


def test_reviewed_files_are_never_written_through_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text('{"id": "a"}\n')
    (tmp_path / "given").mkdir()
    (tmp_path / "given/samples.jsonl").symlink_to(victim)
    with pytest.raises(UnsafeFileError, match="is a link to"):
        LineFile(tmp_path / "given/samples.jsonl")
    (tmp_path / "given/samples.jsonl").unlink()
    (tmp_path / "given/samples.jsonl").write_text('{"id": "a"}\n')
    lines = LineFile(tmp_path / "given/samples.jsonl")
    (tmp_path / "given/samples.jsonl").unlink()
    (tmp_path / "given/samples.jsonl").symlink_to(victim)
    with pytest.raises(LoupeError, match="is a link to"):
        lines.replace(1, b'{"id": "a"}\n', b'{"id": "b"}\n')
    assert victim.read_text() == '{"id": "a"}\n'


def test_what_killed_processes_left_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text('{"id": "a"}\n')
    left = tmp_path / ".loupe-0123456789abcdef.tmp"
    left.write_text("half")
    kept = tmp_path / ".loupe-notes.tmp"
    kept.write_text("mine")
    with Folder(tmp_path).draft("other") as draft:
        LineFile(file)
        assert not left.exists() and kept.read_text() == "mine"
        draft.replace()


def test_user_files_named_on_the_command_line_are_replaced_and_links_refused(tmp_path: Path, finished: Path) -> None:
    shutil.copytree(finished, tmp_path / "here")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "here/report.html").symlink_to(victim)
    done = loupe("report", RUN, "-o", "report.html", cwd=tmp_path / "here")
    assert done.returncode == 2 and "is a link to" in complaint(done)[0]
    assert victim.read_text() == "precious"
    assert loupe("report", RUN, "-o", "other.html", cwd=tmp_path / "here").returncode == 0


def test_help_says_that_runs_are_private() -> None:
    shown = CliRunner().invoke(root, ["run", "--help"]).output
    assert "--shared" in shown


def test_drafts_are_made_where_the_folder_is(tmp_path: Path) -> None:
    with Folder(tmp_path).draft("a/b") as draft:
        draft.file.write(b"x")
        assert [path.name for path in (tmp_path / "a").iterdir()] != ["b"]
        draft.replace()
    assert (tmp_path / "a/b").read_bytes() == b"x"
