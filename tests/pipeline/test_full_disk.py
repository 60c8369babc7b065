"""A disk that refuses: one clear line, exit code 5, nothing lost, nothing torn; then the same command goes on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from loupe.cli.shared.errors import describe
from loupe.engines.pages.page_reader import PageReader, page_reader
from loupe.errors import WriteError, cannot_write
from loupe.files.folder import Folder
from loupe.runs.lock import locked
from tests.support.command_line import command, complaint, environment, loupe, make_folder
from tests.support.full_disk import cases, disk, sweep

#: A benchmark that draws, and keeps what is drawn.
DRAWN = """
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    yield Sample(id="a", text="x", truth="x")

def score(sample, prediction):
    return [Score(measure="m", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(
    title="Drawn", version="1", task="text", load=load, score=score, prepare=lambda pairs: None,
    measures=(Measure(name="m"),),
)
"""
RUN = "runs/python-reader.py_right/mydocs"


@pytest.mark.skipif(sys.platform != "linux", reason="the disk that refuses is made with LD_PRELOAD, which is Linux's")
@pytest.mark.skipif(shutil.which("cc") is None, reason="the disk that refuses needs a C compiler")
def test_whatever_change_of_the_disk_fails_the_command_says_so_and_goes_on_when_there_is_room() -> None:
    known = cases("")
    with disk() as found:
        for name, every, error, lasts in (
            ("run", 17, errno.ENOSPC, True),
            ("score", 13, errno.EIO, False),
            ("export", 6, errno.EDQUOT, True),
            ("init", 6, errno.EIO, False),
        ):
            findings = sweep(found, name, known[name], every=every, start=2, error=error, lasts=lasts)
            assert findings.wrong == [] and findings.refused > 0, name


def test_a_file_larger_than_the_system_allows_is_one_line_and_exit_code_5(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, count=3)
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    rows[1]["text"] = rows[1]["reference"] = "long " * 4000
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = command("infer", "./mydocs", "-e", "python:reader.py:right")
    done = subprocess.run(
        words,
        cwd=tmp_path,
        # Python would store compiled modules up to the limit, and trip over them from then on.
        env=environment(tmp_path) | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)),
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 5, done.stderr
    assert errors == [
        f"error: {RUN}/predictions.jsonl cannot be written: the file would be larger than the system allows"
    ]
    assert "Traceback" not in done.stderr and "answers are kept; to continue: loupe infer" in done.stderr
    kept = (tmp_path / RUN / "predictions.jsonl").read_text()
    assert kept.endswith("\n") and [json.loads(line)["sample"] for line in kept.splitlines()] == ["p0"]
    again = loupe("infer", "./mydocs", "-e", "python:reader.py:right", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / RUN / "predictions.jsonl").read_text().startswith(kept)


@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "EFBIG", "EMFILE"])
def test_no_room_in_the_process_of_an_engine_ends_the_run_and_fails_no_sample(number: str, tmp_path: Path) -> None:
    make_folder(tmp_path, count=4)
    (tmp_path / "full.py").write_text(
        "import errno, pathlib\n"
        "def read(request):\n"
        "    if pathlib.Path('room').exists() or request.id == 'p0':\n"
        "        return 'read'\n"
        f"    raise OSError(errno.{number}, 'x', '/scratch/page.png')\n"
    )
    words = ("infer", "./mydocs", "-e", "python:full.py:read")
    done = loupe(*words, cwd=tmp_path)
    assert done.returncode == 5 and "error: /scratch/page.png cannot be written: " in done.stderr, done.stderr
    (kept,) = tmp_path.glob("runs/*/mydocs/predictions.jsonl")
    assert [json.loads(line)["class"] for line in kept.read_text().splitlines()] == ["ok"]
    (tmp_path / "room").touch()
    assert loupe(*words, cwd=tmp_path).returncode == 0
    assert [json.loads(line)["class"] for line in kept.read_text().splitlines()] == ["ok"] * 4


async def _small(reader: PageReader, page: Path, folder: Path) -> Path:
    return await reader.file(page, folder, longest=200, dpi=None, formats=frozenset({"PNG"}))


def test_a_page_reader_without_room_says_so_with_its_number(tmp_path: Path) -> None:
    """The limit on the size of files is that of the worker: a real write of a page is refused."""
    page = tmp_path / "page.png"
    Image.effect_noise((300, 300), 80).save(page)

    (out := tmp_path / "out").mkdir()

    async def go() -> None:
        async with page_reader(timeout=60, workers=1) as reader:
            # Its modules are loaded, and compiled, before the limit.
            await _small(reader, page, out)
            (worker,) = reader._pool._alive
            resource.prlimit(worker._process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
            await _small(reader, page, out)

    with pytest.raises(WriteError, match="cannot be written: the file would be larger") as raised:
        asyncio.run(go())
    assert raised.value.errno == errno.EFBIG


def test_a_home_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    make_folder(tmp_path, count=1)
    (tmp_path / "drawn.py").write_text(DRAWN)
    (tmp_path / "home").write_text("no folder")
    env = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    done = loupe("run", "./drawn.py", "-e", "python:reader.py:right", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "cannot be written" in line]
    assert [line.startswith(f"{tmp_path / 'home'}/.cache/loupe cannot be written: ") for line in said] == [True]


def test_without_a_folder_for_temporary_files_the_line_names_tmpdir(tmp_path: Path) -> None:
    error = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")
    found = describe(error)
    assert found and (found.exit_code, "set TMPDIR" in found.hint) == (5, True)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your quota on this disk is used up"),
        (errno.EROFS, "the disk is read-only"),
        (errno.ESTALE, "the network disk has lost the file"),
        (errno.ENOLCK, "this disk cannot lock files"),
        (errno.EMFILE, "too many files are open"),
        (errno.EXDEV, "invalid cross-device link"),
    ],
)
def test_every_refusal_has_words_of_its_own(number: int, why: str) -> None:
    error = cannot_write(Path("runs/x/run.json"), OSError(number, os.strerror(number)))
    assert (error.message, error.exit_code) == (f"runs/x/run.json cannot be written: {why}", 5)
    assert error.hint and error.errno == number


def test_what_may_not_be_read_is_bad_input_and_what_may_not_be_written_is_not(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    wrong = describe(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "there")))
    unread = describe(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "gone" / "x")))
    assert wrong and unread and (wrong.exit_code, unread.exit_code) == (5, 2)


def test_a_disk_that_cannot_lock_is_not_called_a_run_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network disk can be had here; the failing call stands in."""
    import fcntl

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with (
        pytest.raises(OSError, match=r"run\.lock cannot be written: this disk cannot lock files"),
        locked(Folder(tmp_path)),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    make_folder(tmp_path, count=1)
    (tmp_path / "runs").mkdir(mode=0o555)
    error, hint = complaint(loupe("infer", "./mydocs", "-e", "python:reader.py:right", cwd=tmp_path))
    assert error.endswith("cannot be written: permission denied") and "write to another one" in hint
