"""Mutated folders, pages and files through every command that opens them.

    python -m tests.hostile --count 20000 [--jobs 2]
    python -m tests.hostile --target runs --case 1234

A case is made from its target and number, so that a finding can be had again. Every finding is a JSON line on standard
output with the words that repeat it; a table by target ends the run, on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile import running
from tests.hostile.cases import Target, World
from tests.hostile.targets import PLANTED, TARGETS

READER = '''"""An engine that reads nothing but the text that a sample has."""
def right(request):
    return request.text or "Invoice 12345"

def look(request):
    from loupe.data.pages import load_page
    return " ".join(str(load_page(page, longest=400).size) for page in request.images)
'''
ALL = TARGETS | PLANTED
#: Programs that libraries start when they find them; the guard refuses them before they run.

PROGRAMS = ("gs", "gswin32c", "sh", "tesseract", "djvutxt", "convert", "file", "xdg-open")


@dataclass(kw_only=True)
class Row:
    """A line of the table at the end."""

    cases: int = 0
    commands: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    findings: int = 0
    memory: int = 0
    cpu: float = 0.0
    whole_cpu: float = 0.0
    seconds: float = 0.0


def prepare(base: Path, targets: Iterable[Target]) -> Path:
    """Write what never changes: templates, the engine and decoys of programs."""
    kept = base / "kept"
    (kept / "programs").mkdir(parents=True)
    (kept / "reader.py").write_text(READER)
    for name in PROGRAMS:
        (kept / "programs" / name).write_text("#!/bin/true\n")
        (kept / "programs" / name).chmod(0o755)
    for target in targets:
        if target.template is not None:
            _make_template(target, World(root=base / "making", kept=kept))
    return kept


def _make_template(target: Target, world: World) -> None:
    """In a child: templates are made by commands of Loupe in their folder."""
    running.new_world(world)
    child = os.fork()
    if child == 0:
        try:
            os.environ.update({"HOME": str(world.home), "TMPDIR": str(world.tmp)})
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(world.kept / "making.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            assert target.template is not None
            target.template(world)
            os._exit(0)
        except BaseException:  # noqa: BLE001  a child must not go on as its parent
            import traceback

            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"{target.name}: no template: {(world.kept / 'making.log').read_text()}")
    shutil.move(world.case, world.kept / target.name)


def hunt(base: Path, jobs: Sequence[tuple[str, int]], *, show: bool = False) -> None:
    """Play cases one by one; a JSON line for each on standard output."""
    running.adopt_orphans()
    running.preload()
    world = World(root=base / f"world-{os.getpid()}", kept=base / "kept")
    world.root.mkdir()
    running.make_canary(world)
    log = base / f"watch-{os.getpid()}" / "log"
    log.parent.mkdir()
    for name, number in jobs:
        lines: list[dict[str, Any]] = []
        try:
            for command, ran, findings in running.play(ALL[name], number, world, log):
                if show:
                    said = ran.out[-3000:] + ran.err[-3000:]
                    print(f"loupe {' '.join(command.words)} -> {ran.code}, {ran.cpu:.1f} s\n{said}", file=sys.stderr)
                lines.append(
                    {"code": ran.code, "memory": ran.memory, "cpu": ran.cpu, "seconds": ran.seconds}
                    | {"findings": [asdict(each) for each in findings]}
                )
        except Exception as error:  # noqa: BLE001  a fault of the harness costs its case, not those that follow
            lines.append(_broken(f"{type(error).__name__}: {error}"))
        print(json.dumps({"target": name, "case": number, "commands": lines}), flush=True)


def _broken(what: str) -> dict[str, Any]:
    finding = {"kind": "harness", "what": what, "words": ""}
    return {"code": -1, "memory": 0, "cpu": 0, "seconds": 0, "findings": [finding]}


def plan(targets: Sequence[Target], count: int, start: int) -> list[tuple[str, int]]:
    """The cases of a run: each target by its share, mixed, so that a run that is cut short has some of each."""
    whole = sum(target.share for target in targets)
    parts = [(target.name, count * target.share // whole) for target in targets]
    jobs = [((number + 0.5) / size, name, start + number) for name, size in parts for number in range(size)]
    return [(name, number) for _, name, number in sorted(jobs)]


def run_runner(base: Path, jobs: Sequence[tuple[str, int]], report: Any, *, show: bool) -> None:
    """A process that plays these cases; where it dies, that is a finding of the harness, and the rest is lost.

    It is started without -P, which its children would inherit: whoever types `loupe` has none either.
    """
    words = [sys.executable, "-m", "tests.hostile", "--runner", str(base)] + (["--show"] if show else [])
    environment = {**os.environ, "PYTHONPATH": str(running.ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # The usual one claims a gigabyte, which every case would inherit and have too little left.
    environment |= {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    runner = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=running.ROOT
    )
    assert runner.stdin is not None and runner.stdout is not None
    runner.stdin.write(json.dumps(jobs))
    runner.stdin.close()
    done = 0
    for line in runner.stdout:
        report(json.loads(line))
        done += 1
    if runner.wait() or done < len(jobs):
        name, number = jobs[min(done, len(jobs) - 1)]
        broken = _broken(f"the runner ended with {runner.returncode}")
        report({"target": name, "case": number, "commands": [broken]})


class Tally:
    """What came of the cases so far."""

    def __init__(self, total: int) -> None:
        self.rows: dict[str, Row] = {}
        self._total = total
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._done = 0

    def add(self, played: dict[str, Any]) -> None:
        """Count a case, and print its findings."""
        with self._lock:
            row = self.rows.setdefault(played["target"], Row())
            row.cases += 1
            for each in played["commands"]:
                row.commands += 1
                row.codes[each["code"]] += 1
                row.memory = max(row.memory, each["memory"])
                row.cpu = max(row.cpu, each["cpu"])
                row.whole_cpu += each["cpu"]
                row.seconds = max(row.seconds, each["seconds"])
                row.findings += len(each["findings"])
                for finding in each["findings"]:
                    again = f"python -m tests.hostile --target {played['target']} --case {played['case']}"
                    print(json.dumps({**finding, "again": again}), flush=True)
            self._done += 1
            if self._done % 100 == 0:
                seconds = time.monotonic() - self._began
                print(f"{self._done:,} of {self._total:,} cases, {seconds:.0f} s", file=sys.stderr, flush=True)

    def table(self) -> str:
        """Markdown, as it stands in docs/security.md."""
        head = "| target | cases | commands | findings | largest process | CPU time, at most and mean | exit codes |\n"
        lines = [head + "|---|---|---|---|---|---|---|"]
        for name, row in sorted(self.rows.items()):
            codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(row.codes.items()))
            lines.append(
                f"| {name} | {row.cases:,} | {row.commands:,} | {row.findings:,} | {row.memory >> 20:,} MiB "
                f"| {row.cpu:.1f} s, {row.whole_cpu / max(1, row.commands):.2f} s | {codes} |"
            )
        return "\n".join(lines)

    @property
    def findings(self) -> int:
        return sum(row.findings for row in self.rows.values())


def main() -> int:
    """Play, print findings and the table, and end with 1 if anything was found."""
    parser = argparse.ArgumentParser(description="Hostile folders, pages and files through every command.")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--target", action="append", choices=sorted(ALL), help="only these")
    parser.add_argument("--case", type=int, action="append", help="only this one, with what its commands say")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--runner", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--show", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.runner:
        hunt(chosen.runner, [(name, number) for name, number in json.load(sys.stdin)], show=chosen.show)
        return 0
    targets = [ALL[name] for name in chosen.target or TARGETS]
    jobs = plan(targets, chosen.count, chosen.start)
    if chosen.case:
        jobs = [(target.name, number) for target in targets for number in chosen.case]
    base = Path(tempfile.mkdtemp(prefix="loupe-hostile-")).resolve()
    tally, began = Tally(len(jobs)), time.monotonic()
    try:
        prepare(base, targets)
        parts = [jobs[part :: chosen.jobs] for part in range(min(chosen.jobs, len(jobs)))]
        threads = [
            threading.Thread(target=run_runner, args=(base, part, tally.add), kwargs={"show": bool(chosen.case)})
            for part in parts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        if chosen.keep:
            print(f"kept: {base}", file=sys.stderr)
        else:
            shutil.rmtree(os.fsencode(base), ignore_errors=True)
    seconds = time.monotonic() - began
    print(tally.table(), file=sys.stderr)
    print(f"{len(jobs):,} cases, {tally.findings:,} findings, {seconds:.0f} s", file=sys.stderr)
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
