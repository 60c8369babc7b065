"""Let the Nth change of the disk fail, for N = 1, 2, 3 …, in every command that writes; then make room and go on.

A harness, used by tests/pipeline/test_full_disk.py with a few faults and by hand with all:
`python -m tests.support.full_disk [CASE ...] [--every 1] [--error ENOSPC --lasts]`.
Changes are opens for writing, writes, syncs, locks, renames, links and new folders below the working folder, which
holds the home folder and TMPDIR, too (tests/stand_ins/failing_writes.c, preloaded). After each: an exit code with a
meaning, one clear line, nothing torn that passes as whole; and the command continues to the undisturbed outcome.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from tests.support.command_line import environment, loupe, make_folder
from tests.support.embedding_server import embedding_server

ROOT = Path(__file__).parents[2]
#: What must never reach a person whose disk is full.
STRAY = re.compile(
    r"Traceback|bug in loupe|never retrieved|Exception ignored|resource_tracker|leaked|Exception in thread|NoneType"
)
RUN = "runs/python-reader.py_right/mydocs"
WORDS = ("alpha", "beta", "gamma")


@dataclass(frozen=True)
class Case:
    """One command in a folder that `prepare` fills; `outcome` is what must be the same in the end."""

    words: Sequence[str]
    prepare: Callable[[Path], None]
    outcome: Callable[[Path], Any]


@dataclass
class Findings:
    """What was seen: `wrong` must be empty."""

    faults: int = 0
    refused: int = 0
    unharmed: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _texts(folder: Path) -> None:
    make_folder(folder, count=3)


def _finished(folder: Path) -> None:
    _texts(folder)
    done = loupe("run", "./mydocs", "-e", "python:reader.py:right", cwd=folder, env={"HOME": str(folder / "home")})
    assert done.returncode == 0, done.stderr


def _rescored(folder: Path) -> None:
    _finished(folder)
    for name in ("scores.jsonl", "result.json"):
        (folder / RUN / name).unlink()


def _scans(folder: Path) -> None:
    (folder / "scans").mkdir()
    for name in WORDS:
        Image.new("RGB", (40, 30), "white").save(folder / "scans" / f"{name}.png")
    (folder / "reader.py").write_text('def read(request):\n    return \'{"total": "1.00"}\'\n')


def _begun(folder: Path) -> None:
    _scans(folder)
    done = loupe("init", "scans", "--task", "fields", "--field", "total:amount", cwd=folder)
    assert done.returncode == 0, done.stderr


def _run_outcome(folder: Path) -> Any:
    run = folder / RUN
    result = json.loads((run / "result.json").read_text())
    answers = sorted((row["sample"], row["text"]) for row in _rows(run / "predictions.jsonl"))
    return result["measures"], answers, sorted(path.name for path in (run / "predictions").iterdir())


def _answers(folder: Path) -> Any:
    return sorted((row["sample"], row["text"]) for row in _rows(folder / RUN / "predictions.jsonl"))


def _measures(folder: Path) -> Any:
    return json.loads((folder / RUN / "result.json").read_text())["measures"]


def _files(*names: str) -> Callable[[Path], Any]:
    def found(folder: Path) -> Any:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for name in names
            for path in sorted([folder / name, *(folder / name).rglob("*")])
            if path.is_file() and "embedding_meta" not in path.name
        }

    return found


def _vectors(folder: Path) -> Any:
    return {path.name: path.read_bytes() for path in sorted((folder / RUN / "embeddings").glob("*.npy"))}


def _is_report(folder: Path) -> Any:
    return (folder / "report.html").read_text().rstrip().endswith("</html>")


def _drafts(folder: Path) -> Any:
    return [(row["id"], row.get("reference")) for row in _rows(folder / "scans" / "samples.jsonl")]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cases(url: str) -> dict[str, Case]:
    """Every command that writes; `url` is that of an embedding server."""
    reader = ("-e", "python:reader.py:right")
    return {
        "run": Case(("run", "./mydocs", *reader), _texts, _run_outcome),
        "infer": Case(("infer", "./mydocs", *reader), _texts, _answers),
        "score": Case(("score", RUN), _rescored, _measures),
        "export": Case(("export", RUN, "--to", "./out"), _finished, _files("out")),
        "report": Case(("report", RUN, "-o", "report.html"), _finished, _is_report),
        "embed": Case(("embed", RUN, "--base-url", url, "--no-regions"), _finished, _vectors),
        "init": Case(
            ("init", "scans", "--task", "fields", "--field", "total:amount"),
            _scans,
            _files("scans/samples.jsonl", "scans/loupe.toml"),
        ),
        "draft": Case(("draft", "scans", "-e", "python:reader.py:read"), _begun, _drafts),
        "example": Case(("example", "pages", "papers"), lambda _: None, _files("papers")),
    }


class Disk:
    """A folder on a disk that refuses when it is told to, and a process in which commands run on it."""

    def __init__(self, place: Path) -> None:
        self.work, self._place = place / "work", place
        library, self._state_file = place / "failing_writes.so", place / "state"
        source = ROOT / "tests" / "stand_ins" / "failing_writes.c"
        words = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(words, check=True, capture_output=True)
        self._state_file.write_bytes(bytes(32))
        with self._state_file.open("r+b") as file:
            self._state = mmap.mmap(file.fileno(), 32)
        self.told = place / "told"
        more = {
            "HOME": str(self.work / "home"),
            "TMPDIR": str(self.work / "tmp"),
            "LD_PRELOAD": str(library),
            "FAULT_UNDER": str(self.work),
            "FAULT_STATE": str(self._state_file),
            "FAULT_TELL": str(self.told),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.support.full_disk", "--drive"],
            cwd=ROOT,
            env=environment(self.work / "home", more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reset(self, template: Path) -> None:
        """Make the working folder as the template is."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(template, self.work)

    def command(self, words: Sequence[str], *, at: int = 0, error: int = 0, lasts: bool = False) -> tuple[int, str]:
        """Run a command whose change number `at` fails; its exit code and what it said on standard error."""
        assert self._driver.stdin and self._driver.stdout
        self._state[:] = struct.pack("4q", 0, at, lasts, error)
        out, err = self._place / "out", self._place / "err"
        order = {"words": list(words), "cwd": str(self.work), "out": str(out), "err": str(err)}
        self._driver.stdin.write(json.dumps(order) + "\n")
        self._driver.stdin.flush()
        code = int(self._driver.stdout.readline())
        return code, err.read_text(errors="replace")

    def changes(self) -> int:
        """How many changes the last command made."""
        return int(struct.unpack("4q", self._state[:])[0])

    def close(self) -> None:
        """End the process."""
        self._driver.communicate()
        self._state.close()


def drive() -> int:
    """The process in which commands run: each in a fork, so that imports are paid once."""
    import loupe.benchmarks.folders.own
    import loupe.pipeline
    import loupe.report.html
    import loupe.web.review.app  # noqa: F401
    from loupe.cli import main as command
    from loupe.hooks import loaded

    dict(loaded("commands"))  # with what they import

    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            os.chdir(order["cwd"])
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = ["loupe", *order["words"]]
            return command(order["words"])
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


@contextlib.contextmanager
def disk() -> Iterator[Disk]:
    """A disk in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="full-disk-") as place:
        found = Disk(Path(place).resolve())
        try:
            yield found
        finally:
            found.close()


def sweep(
    found: Disk, name: str, case: Case, *, every: int = 1, error: int = errno.ENOSPC, lasts: bool = True, start: int = 1
) -> Findings:
    """Fail change `start`, `start + every`, … of one command, and check what it leaves behind."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as place:
        template = Path(place) / "template"
        for folder in ("home", "tmp"):
            (template / folder).mkdir(parents=True)
        case.prepare(template)
        found.reset(template)
        code, said = found.command(case.words)
        assert code == 0, said
        expected, total = case.outcome(found.work), found.changes()
        for at in range(start, total + 1, every):
            found.reset(template)
            found.told.unlink(missing_ok=True)
            code, said = found.command(case.words, at=at, error=error, lasts=lasts)
            what = found.told.read_text() if found.told.exists() else "?"
            where = f"{name} {at}/{total} [{what}]"
            findings.faults += 1
            findings.refused += code != 0
            findings.unharmed += code == 0
            findings.wrong += [f"{where}: {one}" for one in _wrong_now(found.work, code, said)]
            findings.messages[_message(found.work, code, said)] += 1
            kept = _kept(found.work)
            code, said = found.command(case.words) if code else (0, "")
            if code != 0:
                findings.wrong.append(f"{where}: continuing ended with {code}: {said}")
            elif case.outcome(found.work) != expected:
                findings.wrong.append(f"{where}: another outcome: {case.outcome(found.work)}")
            after = _kept(found.work)
            lost = [path for path, lines in kept.items() if not set(lines) <= set(after.get(path, []))]
            findings.wrong += [f"{where}: answers lost of {path}" for path in lost]
    return findings


def _wrong_now(work: Path, code: int, said: str) -> Iterator[str]:
    if code not in (0, 5):
        yield f"exit {code}: {said}"
    if code == 5 and (said.count("error: ") != 1 or said.count("hint: ") != 1):
        yield f"not one line and a hint: {said}"
    if stray := STRAY.search(said):
        yield f"{stray[0]!r} in: {said}"
    for path in sorted(work.rglob("*")):
        if not path.is_file() or "home" in path.relative_to(work).parts:
            continue
        if problem := _torn(path):
            yield f"{path.relative_to(work)}: {problem}"


def _torn(path: Path) -> str:
    if path.suffix == ".tmp" or path.name.startswith(".loupe-"):
        return "left over"
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            json.loads(data)
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        elif path.suffix == ".html":
            return "" if data.rstrip().endswith(b"</html>") else "torn"
        elif path.suffix in (".txt", ".pdf", ".toml", ".svg", ".npy", ".md", ".png") and not data:
            return "empty"
    except ValueError as error:
        return str(error)
    return ""


def _kept(work: Path) -> dict[str, list[str]]:
    """Whole lines of answers and vectors: all that may have been acknowledged."""
    return {
        str(path.relative_to(work)): [line for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"]
        for name in ("predictions.jsonl", "vectors.jsonl")
        for path in work.rglob(name)
    }


def _message(work: Path, code: int, said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith(("error: ", "hint: "))]
    text = " | ".join(lines) if code else "(unharmed)"
    return re.sub(r"\d{3,}", "N", text.replace(str(work), "."))


def main() -> int:
    """Run by hand: all changes of the cases named, or of all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--start", type=int, default=1)
    parser.add_argument("--error", default="ENOSPC")
    parser.add_argument("--lasts", action="store_true")
    parser.add_argument("--drive", action="store_true")
    parser.add_argument("--messages", action="store_true")
    arguments = parser.parse_args()
    if arguments.drive:
        return drive()
    number = int(getattr(errno, arguments.error))
    wrong = 0
    with disk() as found, embedding_server() as server:
        known = cases(server.url)
        for name in arguments.cases or known:
            findings = sweep(
                found,
                name,
                known[name],
                every=arguments.every,
                start=arguments.start,
                error=number,
                lasts=arguments.lasts,
            )
            wrong += len(findings.wrong)
            counts = f"{findings.faults} faults, {findings.refused} refused, {findings.unharmed} unharmed"
            print(f"{name}: {counts}, {len(findings.wrong)} wrong", flush=True)
            if arguments.messages:
                for message, count in findings.messages.most_common():
                    print(f"   {count:4} {message}")
            for one in findings.wrong:
                print(f"   WRONG {one[:600]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
