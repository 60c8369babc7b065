"""Folders of many files are whole or absent, whatever kills the process, and two processes never mix."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loupe.cli import main
from loupe.errors import UsageError
from loupe.files import scratch
from loupe.files.folder import Folder
from loupe.files.scratch import scratch_folder
from loupe.files.whole_folder import whole_folder
from tests.support.command_line import command, environment, loupe, make_folder
from tests.support.pages import draw_page

NAMES = [f"pages/{number}.txt" for number in range(4)] + ["samples.jsonl"]


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _make(target: Path, content: bytes, at: Callable[[int], object] = lambda step: None) -> None:
    with whole_folder(Folder(target)) as folder:
        for step, name in enumerate(NAMES):
            at(step)
            folder.write(name, content, sync=False)
        at(len(NAMES))
    at(len(NAMES) + 1)


def _killed_at(step: int, target: Path) -> None:
    """A process that is killed at a step."""
    if (child := os.fork()) == 0:
        _make(target, b"old", lambda now: now == step and os.kill(os.getpid(), signal.SIGKILL))
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.parametrize("step", range(len(NAMES) + 1))
@pytest.mark.parametrize("there", ["nothing", "an empty folder"])
def test_after_a_kill_the_same_again_works_and_nothing_is_left(tmp_path: Path, step: int, there: str) -> None:
    target = tmp_path / "out"
    if there != "nothing":
        target.mkdir(mode=0o750)
    _killed_at(step, target)
    assert not target.exists() if there == "nothing" else not list(target.iterdir())
    _make(target, b"new")
    assert _names(tmp_path) == ["out"]
    assert {name: (target / name).read_bytes() for name in NAMES} == dict.fromkeys(NAMES, b"new")
    assert there == "nothing" or target.stat().st_mode & 0o777 == 0o750


def test_whoever_swaps_a_folder_above_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir()

    def swap(step: int) -> None:
        if step == 1:
            (tmp_path / "mine").rename(tmp_path / "moved")
            (tmp_path / "mine").symlink_to("stranger")

    (tmp_path / "mine").mkdir()
    _make(tmp_path / "mine" / "out", b"new", swap)
    assert _names(tmp_path / "stranger") == []
    assert {name: (tmp_path / "moved" / "out" / name).read_bytes() for name in NAMES} == dict.fromkeys(NAMES, b"new")


def test_what_a_kill_left_goes_with_the_next_file_that_is_written_there(tmp_path: Path) -> None:
    _killed_at(3, tmp_path / "out")
    assert list(tmp_path.glob(".loupe-*.tmp"))
    if (child := os.fork()) == 0:  # A process that has not looked into this folder yet.
        Folder(tmp_path).write("other", b"")
        os._exit(0)
    os.waitpid(child, 0)
    assert _names(tmp_path) == ["other"]


def test_the_second_of_two_at_once_says_so_and_changes_nothing(tmp_path: Path) -> None:
    def second(step: int) -> None:
        if step == 2:
            with pytest.raises(UsageError, match="out: another process is writing this folder"):
                _make(tmp_path / "out", b"second")
            _make(tmp_path / "other", b"second")
        if step == len(NAMES):  # Between the look at the folder and the end, somebody puts something there.
            (tmp_path / "taken").mkdir()

    _make(tmp_path / "out", b"first", second)
    assert {(tmp_path / "out" / name).read_bytes() for name in NAMES} == {b"first"}
    with pytest.raises(UsageError, match="no longer empty"):
        _make(tmp_path / "taken", b"x", lambda step: (tmp_path / "taken" / "mine").touch())
    assert _names(tmp_path / "taken") == ["mine"]
    assert _names(tmp_path) == ["other", "out", "taken"]


def test_an_error_leaves_nothing_and_a_folder_that_cannot_be_replaced_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZeroDivisionError):
        _make(tmp_path / "deep/out", b"x", lambda step: 1 / (step - 2))
    assert _names(tmp_path / "deep") == []
    monkeypatch.chdir(tmp_path / "deep")
    with pytest.raises(UsageError, match="is the working folder, which cannot be replaced"):
        _make(Path(), b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    _make(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real/samples.jsonl").exists()


def test_folders_for_pages_that_killed_processes_left_are_swept_and_others_stay(tmp_path: Path) -> None:
    for _ in range(2):
        if (child := os.fork()) == 0:
            with scratch_folder("loupe-x-", tmp_path) as folder:
                (folder / "page.png").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    with scratch_folder("loupe-x-", tmp_path) as first, scratch_folder("loupe-x-", tmp_path) as second:
        assert sorted(tmp_path.iterdir()) == sorted([first, second]) and _names(first) == ["in-use"]
    assert not list(tmp_path.iterdir())


def test_a_process_looks_once_for_what_others_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path | None] = []
    monkeypatch.setattr(scratch, "sweep", lambda prefix, place: looked.append(place))
    for place in (tmp_path, tmp_path, tmp_path / "other"):
        place.mkdir(exist_ok=True)
        with scratch_folder("loupe-y-", place):
            pass
    assert looked == [tmp_path, tmp_path / "other"]


def _kill_when(words: tuple[str, ...], here: Path, ready: Callable[[], bool]) -> bool:
    """Kill a command as soon as this holds; return whether it was still going on."""
    process = subprocess.Popen(command(*words), cwd=here, env=environment(here), stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while process.poll() is None and not ready() and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    return process.wait() == -signal.SIGKILL


def _aside(here: Path, count: int) -> Callable[[], bool]:
    """Return a question: does a folder that is not there yet hold more than this?"""
    before = {*here.glob(".loupe-*.tmp")}
    return lambda: any(len(list(new.rglob("*"))) > count for new in {*here.glob(".loupe-*.tmp")} - before)


def test_synth_that_was_killed_works_again_and_two_at_once_do_not_mix(tmp_path: Path) -> None:
    words = ("synth", "out", "--tracks", "plain", "--pages", "40")
    for count in (0, 8):
        assert _kill_when(words, tmp_path, _aside(tmp_path, count))
        assert not (tmp_path / "out").exists()
    has_begun = _aside(tmp_path, 2)
    first = subprocess.Popen(command(*words), cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE)
    while not has_begun():
        assert first.poll() is None
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)
    second = loupe("synth", "out", "--tracks", "plain", "--pages", "8", "--seed", "2", cwd=tmp_path)
    first.send_signal(signal.SIGCONT)
    assert (second.returncode, second.stderr.count("another process is writing this folder")) == (2, 1), second.stderr
    assert first.wait(60) == 0
    first.communicate()
    assert len(list((tmp_path / "out/pages").iterdir())) == len(
        (tmp_path / "out/samples.jsonl").read_text().splitlines()
    )
    assert not list(tmp_path.glob(".loupe-*"))


def test_a_pack_whose_scoring_was_killed_is_scored_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path, count=60)
    monkeypatch.chdir(tmp_path)
    run = "kept/reader/mydocs"
    assert main(["run", "mydocs", "-e", "python:reader.py:right", "--name", "reader", "--runs", "kept", "-j", "1"]) == 0
    assert main(["pack", run, "--with-truth", "-o", "a.tar.gz"]) == 0
    place = tmp_path / "runs/reader"
    words = ("score", "a.tar.gz", "-j", "1")
    unpacking = _aside(place, 0)
    _kill_when(words, tmp_path, lambda: unpacking() or (place / "mydocs").exists())
    _kill_when(words, tmp_path, lambda: (place / "mydocs").exists())
    assert main(list(words)) == 0
    assert (place / "mydocs/result.json").exists() and not list(place.glob(".loupe-*"))
    (place / "mydocs/documents/samples.jsonl").write_text("{}\n")
    assert main(list(words)) == 2


def test_init_and_the_example_go_on_where_they_were_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    draw_page(tmp_path / "docs/a.png", ("alpha",))
    for words, folder in (
        (["init", "docs", "--task", "text"], "docs"),
        (["example", "pages", "shop"], "shop"),
    ):
        assert main(words) == 0
        before = {path: path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()}
        assert main(words) == 2
        for path in [tmp_path / folder / "loupe.toml", *sorted((tmp_path / folder / "papers").rglob("*.pdf"))[::2]]:
            path.unlink()
        assert main(words) == 0
        assert before == {path: path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()}
        (tmp_path / folder / "loupe.toml").write_text("# mine")
        assert main(words) == 2
