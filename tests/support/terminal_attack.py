"""Folders in which every string is hostile, a model server that says nothing else, and a terminal that records."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.chat_server import Reply
from tests.support.command_line import command, environment, loupe, make_folder
from tests.support.report_runs import draw_page

#: Colour 35, clearing, title, link, bell, C1, reordering, hiding, markup, and a line that looks like one of ours.
EVIL = (
    "E\x1b[35m\x1b[2J\x1b]0;t\x07\x1b]8;;http:x\x07\x9b35m\x9d0;t\x9c\u202e\u2066\u200b\x7f\x08\r[red][link=x]\nhint: z"
)
#: The same as the name of a file, with a byte that is no text.
NAME = f"{EVIL}\udcff"
#: Values that must stay for a record to be read at all: the path, what is chosen from a list, and dates.
_KEPT = {"benchmark", "class", "kind", "created", "failed_are", "currency", "headline", "measure", "benchmark_id"}
_KEPT |= {"units", "directions", "measures", "figures", "statistics", "outcomes", "diagnostics", "speed", "digest"}
_NAMED_BY_THEM = {"slices", "tags", "facts", "packages", "host", "half", "parts", "options", "prompts"}


def poisoned(document: Any, *, under: str = "") -> Any:
    """The document with every string hostile, names of tags and facts too."""
    if isinstance(document, str):
        return document + EVIL
    if isinstance(document, list):
        return [poisoned(each) for each in document]
    if isinstance(document, dict):
        names = EVIL if under in _NAMED_BY_THEM else ""
        return {key + names: each if key in _KEPT else poisoned(each, under=key) for key, each in document.items()}
    return document


def make_hostile(root: Path) -> dict[str, str]:
    """A working folder with hostile things of every kind; what is where, by name."""
    make_folder(root, count=4)
    folder = root / EVIL
    (root / "mydocs").rename(folder)
    (folder / "loupe.toml").write_text(f"[benchmark]\ntitle = {json.dumps(EVIL)}\nversion = {json.dumps(EVIL)}\n")
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    rows = [row | {"tags": {f"half{EVIL}": EVIL}} for row in rows]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "reader.py").write_text(
        f"from loupe.errors import EngineError\nEVIL = {EVIL!r}\n"
        "def read(request):\n"
        "    if 'p3' in request.id:\n        raise EngineError('no ink' + EVIL)\n"
        "    return request.text + EVIL\n"
    )
    runs = {}
    for name in ("one", "two", "broken"):
        done = loupe("run", folder, "-e", "python:reader.py:read", "--name", name, cwd=root)
        assert done.returncode == 0, done.stderr
        [run] = [path.parent for path in (root / "runs" / name).rglob("run.json")]
        runs[name] = run
    for name in ("one", "two"):
        poison_run(runs[name])
    (runs["broken"] / "result.json").write_text(json.dumps({EVIL: EVIL}))
    (runs["broken"] / "predictions.jsonl").write_text(json.dumps({EVIL: EVIL}) + "\n" + EVIL)
    bad = root / f"bad{NAME}"
    bad.mkdir()
    (bad / "loupe.toml").write_text(f"[benchmark]\n{json.dumps(EVIL)} = 1\n[{json.dumps(EVIL)}]\n")
    (bad / "samples.jsonl").write_text(json.dumps({"id": EVIL, EVIL: EVIL}) + "\n" + EVIL)
    papers = root / f"papers{NAME}"
    for kind in ("a", "b"):
        (papers / f"{kind}{NAME}").mkdir(parents=True)
        draw_page(root / "page.png", "A page").rename(papers / f"{kind}{NAME}" / f"{NAME}.png")
        (papers / f"{kind}{NAME}" / f"{NAME}.pdf").write_text(EVIL, errors="replace")
    config = root / ".config/loupe/engines"
    config.mkdir(parents=True)
    (config / f"{NAME}.toml").write_text(f'kind = "command"\ntitle = {json.dumps(EVIL)}\ncommand = ["{{image}}"]\n')
    (config / "bad.toml").write_text(f'kind = "openai"\n{json.dumps(EVIL)} = {json.dumps(EVIL)}\n')
    (root / "loupe.toml").write_text(
        f'[engines.{json.dumps(EVIL)}]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
        f"model = {json.dumps(EVIL)}\n"
    )
    return {
        "folder": str(folder),
        "bad": str(bad),
        "papers": str(papers),
        "page": str(papers / f"a{NAME}" / f"{NAME}.png"),
        "one": str(runs["one"]),
        "two": str(runs["two"]),
        "broken": str(runs["broken"]),
        "evil": EVIL,
        "engine": NAME,
    }


def poison_run(run: Path) -> None:
    """Make every string of a finished run hostile; it is still read as a run."""
    for name in ("run.json", "result.json"):
        document = json.loads((run / name).read_text())
        (run / name).write_text(json.dumps(poisoned(document)))
    for name in ("predictions.jsonl", "scores.jsonl"):
        rows = [json.loads(line) for line in (run / name).read_text().splitlines()]
        (run / name).write_text("".join(json.dumps(poisoned(row) | {"sample": row["sample"]}) + "\n" for row in rows))


def hostile_reply(request: Any) -> Reply:
    """Errors and answers by turns, all of them hostile."""
    if request.number % 2:
        return Reply(status=400, error=EVIL, content_type="text/plain")
    return Reply(text=EVIL, finish_reason="stop")


MODELS = {"object": "list", "data": [{"id": f"model{EVIL}", "object": "model"}]}


def on_terminal(words: Sequence[str], cwd: Path, *, seconds: float) -> bytes:
    """What `loupe WORDS` writes on a terminal of its own. What does not end is ended, as by Ctrl-C."""
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    env = environment(cwd, {"TERM": "xterm-256color", "DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "true"})
    env.pop("NO_COLOR", None)
    child = subprocess.Popen(
        command(*words), cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    written, deadline, ending = bytearray(), time.monotonic() + seconds, False
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            written += data
            if data.endswith((b": ", b"? ", b"] ")):
                os.write(master, b"\x04")  # the end of input answers every question
        elif child.poll() is not None:
            break
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL if ending else signal.SIGINT)
            deadline, ending = time.monotonic() + 10, True
    child.wait()
    os.close(master)
    return bytes(written)
