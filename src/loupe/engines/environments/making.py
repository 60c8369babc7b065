"""Making and removing environments with uv: exactly the locked files, checked by their digests, in a folder of ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from loupe.engines.environments.places import LOCKED, RECORD, Environment, Record, Settings, made, root, wanted
from loupe.errors import DownloadError, LoupeError, MissingToolError, WriteError, cannot_write, is_refusal
from loupe.files.folder import Folder
from loupe.files.scratch import scratch_folder
from loupe.helpers import environment as helper_environment
from loupe.typed import encode_json

_NO_NOTE: Callable[[str], None] = lambda line: None  # noqa: E731


def uv_command() -> list[str]:
    """uv as it is on the PATH, or as a package of Loupe's Python. Raises MissingToolError where it is neither."""
    program = shutil.which("uv")
    if program:
        return [str(Path(program).absolute())]
    if find_spec("uv"):
        return [sys.executable, "-P", "-m", "uv"]
    raise MissingToolError(
        "uv, which makes environments, is not installed", hint=f"install it: {sys.executable} -m pip install uv"
    )


def make(settings: Settings, note: Callable[[str], None] = _NO_NOTE) -> Record:
    """Install the environment of a profile, unless it is there; `note` gets what uv says while it works.

    Raises MissingToolError without uv, DownloadError if the index does not answer, and LoupeError if the lock does not
    fit or a file is not the locked one.
    """
    environment = wanted(settings)
    uv = uv_command()
    places = Folder(root())
    places.create(private=True)
    with _alone(places, environment.folder.name) as lock:
        if record := environment.record:
            return record
        shutil.rmtree(environment.folder, ignore_errors=True)
        began = time.monotonic()
        try:
            _install(settings, environment, partial(_run, note=note, lock=lock), uv)
        except BaseException:
            shutil.rmtree(environment.folder, ignore_errors=True)
            raise
        seconds = round(time.monotonic() - began, 1)
        return _finish(settings, environment, seconds)


def remove(name: str) -> int:
    """Delete every environment of this name, for whatever lock it was made; the bytes that they took."""
    return sum(_deleted(folder) for found, folder, _ in made() if found == name)


def _deleted(folder: Path) -> int:
    """The lock stays: another command may wait for it."""
    with _alone(Folder(root()), folder.name):
        freed = size_of(folder)
        try:
            if folder.is_symlink():
                folder.unlink()  # It lies elsewhere because somebody wanted it there.
            else:
                shutil.rmtree(folder)
        except OSError as error:
            raise cannot_write(folder, error) from None
    return freed


def size_of(folder: Path) -> int:
    """Bytes that a folder takes on disk, each file once; what it shares with uv's cache is counted."""
    seen: dict[tuple[int, int], int] = {}
    for place, _, files in os.walk(folder):
        for name in files:
            found = os.lstat(os.path.join(place, name))  # noqa: PTH118  a hundred thousand files
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def _install(
    settings: Settings, environment: Environment, run: Callable[[list[str], Path], None], uv: list[str]
) -> None:
    folder = environment.folder
    with scratch_folder("uv-", root()) as here:
        lock = here / LOCKED
        run([*uv, "venv", "--no-project", "--python", _python(settings), str(folder)], here)
        if environment.lock is not None:
            lock.write_bytes(environment.lock)
        else:
            (here / "wanted.txt").write_text("\n".join(settings.packages) + "\n")
            resolving = ["pip", "compile", "--python", str(environment.python), "--generate-hashes", "--no-annotate"]
            run([*uv, *resolving, "--no-header", "wanted.txt", "--output-file", str(lock)], here)
        installing = ["pip", "sync", "--python", str(environment.python), "--require-hashes", str(lock)]
        run([*uv, *installing], here)
        shutil.copy(lock, folder / LOCKED)


def _python(settings: Settings) -> str:
    """This Python where it may run the engine, else whichever uv finds here."""
    return sys.executable if settings.runs_on(sys.version_info[1]) else settings.python


def _run(command: list[str], folder: Path, note: Callable[[str], None], lock: int) -> None:
    """Run uv in an empty folder, so that no project takes part. Raises LoupeError with its own words.

    It holds the lock of the environment, too: if this process is killed, the next one waits until uv has ended.
    """
    variables = helper_environment("network", "uv")
    # Another Python is not fetched: it would come from a place that nobody has named.
    variables |= {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", "UV_NO_PROGRESS": "1", **_own_settings()}
    said: list[str] = []
    with subprocess.Popen(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, errors="replace", pass_fds=(lock,),
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            for line in process.stderr:
                said.append(line.strip())
                if line.startswith(("Prepared", "Installed", "Resolved")):
                    note(line.strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        if refused := _refused(" ".join(said), command):
            raise refused
        raise _failure(said)


def _own_settings() -> dict[str, str]:
    """Return the user's own settings of uv, else the system's, as all that counts: none of a folder above does."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    listed = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    places = [own, *map(Path, listed), Path("/etc")]
    files = [place / "uv" / "uv.toml" for place in places if place.is_absolute()]
    named = os.environ.get("UV_CONFIG_FILE") or next((str(file) for file in files if file.is_file()), "")
    return {"UV_CONFIG_FILE": named} if named else {"UV_NO_CONFIG": "1"}


def _refused(said: str, command: list[str]) -> WriteError | None:
    """Return what the disk refused, if uv says so: it writes `path` … (os error 28)."""
    found = re.search(r"\(os error (\d{1,3})\)", said)
    if found is None or not is_refusal(error := OSError(int(found[1]), os.strerror(int(found[1])))):
        return None
    return cannot_write(next(reversed(re.findall(r"`(/[^`]+)`", said)), command[-1]), error)


def _reason(said: list[str]) -> str:
    """Return what uv complained of, without what it did before."""
    words = [line for line in said if line and not line.startswith(("Using", "Creating", "Activate", "Resolved"))]
    return " ".join(words)[:600] or "no message"


def _failure(said: list[str]) -> LoupeError:
    """Return the error for what uv complained of, with what to do; the network is to blame unless it says otherwise."""
    lower = " ".join(said).lower()
    if "hash mismatch" in lower:
        hint = "a file is not the one that was locked: do not use it; ask the people who run your package index"
    elif "no interpreter found" in lower or "no python" in lower:
        hint = "install a Python of that version, then try again"
    elif "wheel" in lower or "requires-python" in lower:
        hint = "the lock does not fit this Python or this machine; see docs/engines/environments.md"
    else:
        hint = "check the network and uv's settings (UV_DEFAULT_INDEX, uv.toml), then try again"
        return DownloadError(f"uv could not make the environment: {_reason(said)}", hint=hint)
    return LoupeError(f"uv could not make the environment: {_reason(said)}", hint=hint)


def _finish(settings: Settings, environment: Environment, seconds: float) -> Record:
    folder = environment.folder
    # What uv wrote, without starting anything: packages may have laid down code that runs with the Python.
    found = re.search(
        r"^version_info = (\d[\d.]{0,20})", Folder(folder).read("pyvenv.cfg", limit=1 << 16).decode(), re.M
    )
    version = found[1] if found else "unknown"
    digest = environment.folder.name.rpartition("-")[2]
    record = Record(
        environment=settings.environment, python=version, lock=digest, size=size_of(folder), seconds=seconds
    )
    Folder(folder).write(RECORD, encode_json(record))
    return record


@contextmanager
def _alone(places: Folder, name: str) -> Iterator[int]:
    """Wait for whoever makes the same environment; yield the descriptor of the lock."""
    import fcntl

    try:
        descriptor = places.open_lock(f"{name}.lock")
    except OSError as error:
        raise cannot_write(places.path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
