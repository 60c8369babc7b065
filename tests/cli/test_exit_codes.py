"""Exit codes, hints and `--strict` are the same in all commands: docs/cli.md#exit-codes, command by command."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loupe.cli import main
from loupe.cli.shared.errors import NOT_WRITTEN, SOME_FAILED, USAGE
from loupe.cli.shared.top import root
from tests.support.command_line import command, environment, every_command, installed, make_folder
from tests.support.pages import draw_page

COMMANDS = [name for name, _ in every_command(root)]
RUN = "kept/reader/mydocs"
ELSEWHERE = "make the folder writable, or write to another one"
ROOM = "make room there (df -h) and repeat the command; answers already stored are kept"
#: What each command that writes files is given; what it writes is named or a default place.
WRITES = {
    "run": ("mydocs", "-e", "python:reader.py:right", "-j", "1"),
    "infer": ("mydocs", "-e", "python:reader.py:right"),
    "score": ("mydocs", "answers", "-j", "1"),
    "demo": ("--limit", "1"),
    "report": ("kept",),
    "export": ("kept", "--to", "inspect"),
    "pack": (RUN,),
    "unpack": ("pack.tar.gz",),
    "init": ("docs", "--task", "text"),
    "draft": ("scans", "-e", "python:reader.py:wrong"),
    "synth": ("new", "--pages", "10"),
    "example pages": ("shop",),
    "example truth": ("shop2/papers/invoices",),
    "data pack": ("mydocs",),
    "data prepare": ("sample_pages", "--to", "new"),
    "data unpack": ("mydocs.tar", "--to", "new"),
    "embed": (RUN, "--base-url", "http://127.0.0.1:9", "-o", "new"),
    "load": ("mydocs", "-e", "python:reader.py:right", "--sweep", "1", "--requests", "2", "--json", "load.json"),
}
#: Commands that write only where a network, a GPU or a browser has brought something, or nothing at all.
OTHERS = {
    *("verify", "runs", "compare", "reproduce", "view", "lint", "review folder", "review tests", "example models"),
    *("select", "data get", "data list", "data verify", "data where", "setup", "bench check", "bench list"),
    *("bench show", "bench suites", "engine install", "engine list", "engine remove", "engine show", "engine test"),
    *("serve", "compress", "size", "doctor", "trust"),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands are given."""
    here = tmp_path_factory.mktemp("here")
    make_folder(here)
    for name in ("docs", "scans"):
        (here / name).mkdir()
        draw_page(here / name / "a.png", ("alpha",))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert main(["run", "mydocs", "-e", "python:reader.py:right", "--name", "reader", "--runs", "kept"]) == 0
        assert main(["init", "scans", "--task", "text"]) == 0
        assert main(["pack", RUN, "--with-truth", "-o", "pack.tar.gz"]) == 0
        assert main(["data", "pack", "mydocs"]) == 0
        assert main(["export", RUN, "--to", "./answers"]) == 0
        assert main(["example", "pages", "shop2"]) == 0
        assert main(["init", "shop2/papers/invoices", "--task", "fields", "--field", "date:date"]) == 0
    return here


def _refuse(monkeypatch: pytest.MonkeyPatch, here: Path, number: int) -> None:
    """Every file and folder that is made or opened for writing, by the module that writes or below this folder."""
    changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def refusing(call: Any) -> Any:
        def made(path: Any, *arguments: Any, **named: Any) -> Any:
            writes = call is not os.open or arguments[0] & changes
            ours = named.get("dir_fd") is not None or os.path.abspath(os.fsdecode(path)).startswith(str(here))  # noqa: PTH100
            if call is real_open and not arguments[0] & changes:
                return call(path, *arguments, **named)
            if writes and ours:
                raise OSError(number, os.strerror(number), path)
            return call(path, *arguments, **named)

        return made

    real_open = os.open
    monkeypatch.setattr(os, "mkdir", refusing(os.mkdir))
    monkeypatch.setattr(os, "open", refusing(real_open))


def test_every_command_is_known_here() -> None:
    named = installed(tuple(name.split()) for name in WRITES.keys() | OTHERS)
    assert {" ".join(words) for words in named} == set(COMMANDS) and not WRITES.keys() & OTHERS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_an_option_that_it_does_not_have(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = main([*name.split(), "--no-such-option"]), capsys.readouterr()
    assert (code, said.out) == (USAGE, "")
    error, hint = said.err.splitlines()
    assert (
        error.startswith("error: no such option '--no-such-option'")
        and hint == f"hint: see the options: loupe {name} --help"
    )


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC], ids=["a read-only disk", "a full disk"])
@pytest.mark.parametrize("name", WRITES)
def test_every_command_that_writes_ends_with_5_and_the_same_hint(
    here: Path, name: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    before = sorted(here.rglob("*"))
    with monkeypatch.context() as patch:
        _refuse(patch, here, number)
        code = main([*name.split(), *WRITES[name]])
    said = capsys.readouterr()
    assert code == NOT_WRITTEN, said.err
    *_, error, hint = said.err.splitlines()
    reason = "the disk is read-only" if number == errno.EROFS else "the disk is full"
    assert error.startswith("error: ") and error.endswith(f" cannot be written: {reason}"), said.err
    assert hint == f"hint: {ELSEWHERE if number == errno.EROFS else ROOM}"
    assert sorted(here.rglob("*")) == before and "Errno" not in said.err and "Traceback" not in said.err


def test_processes_that_draw_pages_say_that_the_disk_is_full(tmp_path: Path) -> None:
    done = subprocess.run(
        command("synth", "out", "--tracks", "plain", "--pages", "10"),
        cwd=tmp_path,
        # Python takes a module that it could write in part only for whole, in every later process.
        env=environment(tmp_path) | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),
        check=False,
    )
    assert done.returncode == NOT_WRITTEN, done.stderr
    assert "cannot be written: the file would be larger than the system allows" in done.stderr
    assert "\nhint: " in done.stderr and not list(tmp_path.glob("out"))


def test_a_full_disk_that_uv_meets_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "uv").write_text(
        "#!/bin/sh\necho 'error: failed to write to file `/somewhere/uv/x`: No space (os error 28)' >&2\nexit 2\n"
    )
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["engine", "install", "docling"]) == NOT_WRITTEN
    assert f"error: /somewhere/uv/x cannot be written: the disk is full\nhint: {ROOM}\n" in capsys.readouterr().err


def test_strict_means_the_same_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    codes = {}
    for function in ("right", "sometimes", "broken"):
        read = ["mydocs", "-e", f"python:reader.py:{function}", "--retries", "0", "-j", "1"]
        run = f"runs/python-reader.py_{function}/mydocs"
        for words in (["infer", *read[:-2]], ["run", *read], ["score", run, "-j", "1"]):
            codes[words[0], function] = main(words), main([*words, "--strict"])
    capsys.readouterr()
    expected = {"right": (0, 0), "sometimes": (0, SOME_FAILED), "broken": (SOME_FAILED, SOME_FAILED)}
    assert codes == {key: expected[key[1]] for key in codes}


def test_the_table_of_exit_codes_has_every_command_with_strict() -> None:
    table = (Path(__file__).parents[2] / "docs/cli.md").read_text().partition("## Exit codes")[2].partition("## Env")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    strict = {name for row in rows if "`--strict`" in row for name in re.findall(r"`([a-z ]+)`", row.split("|")[1])}
    assert strict == {name for name, each in every_command(root) if any("--strict" in one.opts for one in each.params)}
    named = {name for row in rows for name in re.findall(r"`([a-z ]+)`", row.split("|")[1])}
    assert named <= set(COMMANDS)
