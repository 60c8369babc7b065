"""One case: its world, its commands one by one in children that are watched, and what was found.

What the audit hook of `guard` writes down comes from inside; the canary files, the exit code, the memory, the time,
what was printed and which processes are left are looked at from outside.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import hashlib
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.results.scored_here import NOT_HERE
from tests.hostile import mutations
from tests.hostile.cases import SECRET, Command, Target, World

ROOT = Path(__file__).parents[2]
GUARD = Path(__file__).parent / "guard"
#: A command hangs that is still there this many seconds after it may have used up its CPU time.
HANGS = 30
#: Seconds that processes get to end after the command that started them.
_GRACE = 3.0
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|this is a bug in loupe|Exception ignored in|Fatal Python")
_WARNING = re.compile(r"\.py:\d+: \w*Warning")
#: Control characters but tab and line end, and those that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a command did and must not."""

    kind: str
    what: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended; `code` is negative for a signal. `memory` is the largest process in bytes."""

    code: int
    seconds: float
    cpu: float
    memory: int
    out: str
    err: str
    left: tuple[str, ...]
    hung: bool


def documented_codes() -> frozenset[int]:
    """The exit codes that hostile input may end with: those of the table but for a crash, Ctrl-C and a closed pipe."""
    from loupe.cli.shared.errors import BROKEN_PIPE, CRASHED, EXIT_CODES, INTERRUPTED

    return frozenset(EXIT_CODES) - {CRASHED, INTERRUPTED, BROKEN_PIPE}


def new_world(world: World) -> dict[str, str]:
    """Fresh folders for a case, and the digest of the canary."""
    for folder in (world.case, world.home, world.tmp):
        _remove(folder)
        folder.mkdir(parents=True)
    return canary_state(world)


def make_canary(world: World) -> None:
    """Files that no command may change or show."""
    from PIL import Image

    _remove(world.canary)
    (world.canary / "folder").mkdir(parents=True)
    (world.canary / "secret.txt").write_text(f"{SECRET}\n")
    (world.canary / ".bashrc").write_text(f"# {SECRET}\n")
    record = {"sample": "p0", "text": SECRET, "class": "ok"}
    (world.canary / "predictions.jsonl").write_text(json.dumps(record) + "\n")
    info = {"benchmark": "x", "benchmark_id": SECRET, "version": "1", "engine": SECRET, "profile": {}}
    (world.canary / "run.json").write_text(json.dumps(info))
    Image.new("RGB", (40, 30), "white").save(world.canary / "page.png")


def canary_state(world: World) -> dict[str, str]:
    """Name → what it is, for everything below the canary."""
    found = {}
    for folder, folders, files in os.walk(world.canary):
        for name in (*folders, *files):
            path = Path(folder) / name
            facts = path.lstat()
            data = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            digest = hashlib.sha256(data).hexdigest()[:12]
            found[str(path.relative_to(world.canary))] = f"{facts.st_mode:o} {facts.st_size} {digest}"
    return found


def _remove(path: Path) -> None:
    """The whole tree, whatever its modes and names are."""
    if path.is_symlink() or path.exists():
        shutil.rmtree(os.fsencode(path))


def play(target: Target, number: int, world: World, log: Path) -> Iterator[tuple[Command, Ran, list[Finding]]]:
    """Make case `number` and run its commands, with what was found in each. Below 0 nothing is mutated."""
    before = new_world(world)
    dice = (random.Random if number >= 0 else mutations.Calm)(f"{target.name} {number}")
    template = world.kept / target.name
    if template.exists():
        shutil.copytree(template, world.case, symlinks=True, dirs_exist_ok=True)
        for info in world.case.glob("runs/*/*/run.json"):
            info.write_text(info.read_text().replace(str(world.kept.parent / "making"), str(world.root)))
    shown: set[str] = set()
    for index, command in enumerate(target.make(dice, world)):
        if _names_a_link(command, world):
            continue
        log.unlink(missing_ok=True)
        ran = run(command, target, world, log, seed=abs(number) * 100 + index)
        findings = list(judge(command, ran, target, log))
        for name in sorted(set(_shown(world)) - shown):
            findings.append(_finding("read", f"{name} holds what stands outside", command))
            shown.add(name)
        after = canary_state(world)
        if after != before:
            changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            findings.append(_finding("write", f"the canary has changed: {changed}", command))
            make_canary(world)
        yield command, ran, findings


def _names_a_link(command: Command, world: World) -> bool:
    """Whether the command itself names one: what a user names may be a link, what lies below it may not."""
    places = (word.partition(":")[2] or word for word in command.words)
    return any(os.path.islink(world.case / command.cwd / place) for place in places)  # noqa: PTH114  any text


def _finding(kind: str, what: str, command: Command) -> Finding:
    where = "" if command.cwd == "." else f" (in {command.cwd})"
    return Finding(kind=kind, what=what[:3000], words=" ".join(command.words) + where)


def judge(command: Command, ran: Ran, target: Target, log: Path) -> Iterator[Finding]:
    """What was wrong with a command."""
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            noted = json.loads(line)
            yield _finding(noted["kind"], noted["what"], command)
    if ran.hung:
        waited = f"still there after {target.seconds + HANGS} s, {ran.cpu:.1f} s of CPU time"
        trace = ran.err.partition("Extension modules:")[0]
        yield _finding("hangs", f"{waited}: {trace[-2500:]}", command)
    elif ran.code not in documented_codes():
        yield _finding("exit", f"code {ran.code}: {_last_lines(ran.err)}", command)
    elif found := _TRACEBACK.search(ran.err):
        yield _finding("traceback", ran.err[found.start() :], command)
    elif found := _WARNING.search(ran.err):
        yield _finding("warning", _line_at(ran.err, found.start()), command)
    if target.lie and (found := re.search(target.lie, ran.out)) and NOT_HERE not in ran.out:
        yield _finding("lie", _line_at(ran.out, found.start()), command)
    if ran.memory > target.memory:
        yield _finding("memory", f"{ran.memory >> 20} MiB", command)
    if ran.cpu > target.seconds:
        yield _finding("time", f"{ran.cpu:.1f} s of CPU time", command)
    for name, said in (("stdout", ran.out), ("stderr", ran.err)):
        if found := _CONTROL.search(said):
            yield _finding("control", f"{name} has {found[0]!a}: {_line_at(said, found.start())!a}", command)
        if SECRET in said:
            yield _finding("read", f"{name} shows what stands outside: {_line_at(said, said.index(SECRET))!a}", command)
    if ran.left:
        yield _finding("left", f"processes are left: {', '.join(ran.left)}", command)


def _shown(world: World) -> Iterator[str]:
    """Files of the case that hold what stands outside; links are not followed, a hard link is no copy."""
    for folder, _, files in os.walk(world.case):
        for name in files:
            path = Path(folder) / name
            facts = path.lstat()
            small = stat.S_ISREG(facts.st_mode) and facts.st_size < 5_000_000
            if small and SECRET.encode() in path.read_bytes():
                yield str(path.relative_to(world.case))


def _line_at(said: str, place: int) -> str:
    start = said.rfind("\n", 0, place) + 1
    return said[max(start, place - 150) : place + 150].partition("\n")[0]


def _last_lines(said: str) -> str:
    return " / ".join(said.splitlines()[-8:])


def run(command: Command, target: Target, world: World, log: Path, *, seed: int) -> Ran:
    """One command in a forked child with limits, until it and all that it started have ended."""
    out, err = log.with_name("out"), log.with_name("err")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(command, target, world, log, seed)
    watched = os.pidfd_open(child)
    hung = not select.select([watched], [], [], target.seconds + HANGS)[0]
    os.close(watched)
    if hung:
        os.kill(child, signal.SIGABRT)  # It says where it is.
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    left, memory, cpu = _sweep()
    return Ran(
        code=os.waitstatus_to_exitcode(status),
        seconds=time.monotonic() - began,
        cpu=cpu + used.ru_utime + used.ru_stime,
        memory=max(memory, used.ru_maxrss << 10),
        out=out.read_text(encoding="utf-8", errors="backslashreplace"),
        err=err.read_text(encoding="utf-8", errors="backslashreplace"),
        left=() if hung else tuple(left),
        hung=hung,
    )


def _sweep() -> tuple[list[str], int, float]:
    """Wait for what the command has left behind, then kill it: the names, the largest memory, the CPU time."""
    memory, cpu, names = 0, 0.0, []
    began = time.monotonic()
    while True:
        try:
            pid, _, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return names, memory, cpu
        if pid:
            memory, cpu = max(memory, used.ru_maxrss << 10), cpu + used.ru_utime + used.ru_stime
        elif time.monotonic() - began > _GRACE:
            for each in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split():
                names.append(_name_of(each))
                os.kill(int(each), signal.SIGKILL)
            began = time.monotonic() + _GRACE
        else:
            time.sleep(0.005)


def _name_of(pid: str) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return " ".join(words)[:120]


def adopt_orphans() -> None:
    """Processes whose parent has died become our children, so that none gets away."""
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def environment(world: World, log: Path) -> dict[str, str]:
    """What a command sees: a home of its own, no keys, no programs but decoys, and the guard on the path of workers."""
    return {
        "HOME": str(world.home),
        "TMPDIR": str(world.tmp),
        "PATH": str(world.kept / "programs"),
        "PYTHONPATH": str(GUARD),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "COLUMNS": "140",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_HOSTILE_LOG": str(log),
        "OMP_HOSTILE_WORLD": str(world.root),
    }


def _be_child(command: Command, target: Target, world: World, log: Path, seed: int) -> None:
    """Become the command; never returns."""
    code = 71
    try:
        os.setsid()
        files = [os.open(os.devnull, os.O_RDONLY)]
        files += [os.open(log.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for name in ("out", "err")]
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(environment(world, log))
        tempfile.tempdir = None
        sys.argv = ["loupe", *command.words]
        os.chdir(world.case / command.cwd)
        # The soft limit alone: scoring processes set one of their own. What gets between bound and limit is found.
        resource.setrlimit(resource.RLIMIT_DATA, (target.memory * 5 // 4, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (target.seconds + 10, target.seconds + 15))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 31, 1 << 31))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        faulthandler.enable(all_threads=True)
        import tests.hostile.guard.sitecustomize  # noqa: F401  it watches from here on

        code = _call(command.words, seed)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  nothing may get back into the harness
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _call(words: Sequence[str], seed: int) -> int:
    """The exit code of `loupe WORDS`; of a page server, whether every page was answered."""
    from loupe.cli import main
    from loupe.cli.shared.errors import describe
    from tests.hostile import apps

    if words[0] not in ("view", "review"):
        return main(list(words))
    try:
        return apps.visit(tuple(words), random.Random(seed))
    except Exception as error:
        expected = describe(error)
        if expected is None:
            raise
        print(f"error: {expected.message}", file=sys.stderr)
        return expected.exit_code


def preload() -> None:
    """Import what commands import, once, so that a case costs a fork and not a start."""
    import importlib
    import pkgutil

    import loupe.features
    from tests.hostile.strings import MAKERS  # noqa: F401  and with it the metrics

    for package in (
        *("cli", "cli.shared", "pipeline", "report", "results", "web", "web.view", "web.review", "data", "data.hub"),
        "runs",
        *(f"features.{info.name}" for info in pkgutil.iter_modules(loupe.features.__path__)),
    ):
        found: Any = importlib.import_module(f"loupe.{package}")
        for info in pkgutil.iter_modules(found.__path__):
            importlib.import_module(f"loupe.{package}.{info.name}")
    from loupe.runs.installed import installed_benchmarks

    for hook in installed_benchmarks().values():
        hook.load()
    for name in ("PIL.Image", "numpy", "pypdfium2", "pyarrow.parquet", "starlette.applications", "uvicorn", "jinja2"):
        importlib.import_module(name)
    for name in ("nltk.translate.meteor_score", "jieba", "scipy.stats", "scipy.optimize"):
        importlib.import_module(name)
    for name in ("rich.console", "rich.table", "aiohttp", "nh3", "markdown_it", "lxml.html", "logging"):
        importlib.import_module(name)
