"""The real command in a real process, as a user starts it, and a small folder of samples for it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest

from loupe.cli.shared.top import root
from loupe.data import trust
from loupe.engines.registry import known_names
from tests.support import warm_command

T = TypeVar("T", bound=str | Path)

#: Name of the cache folder of all tests in this process (conftest.py).
CACHE = "cache_of_all_tests"
#: Functions for `-e python:reader.py:NAME`; samples here are texts, which `right` gives back.
READER = """
import os, time
from loupe.errors import EngineError
from loupe.types import Output

def right(request):
    return Output(text=request.text, output_tokens=3)

def wrong(request):
    return request.text.upper()

def broken(request):
    raise EngineError(f"no \\x1b[31mink on {request.id}")

def sometimes(request):
    if request.id == "p3":
        raise EngineError("smudged")
    return request.text

def slow(request):
    time.sleep(0.3)
    return request.text
"""


def command(*words: str | Path) -> list[str]:
    """`loupe WORDS`, with the Python that runs the tests."""
    return [sys.executable, "-m", "loupe", *map(str, words)]


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings, keys and servers of the person who runs the tests."""
    clean = {key: value for key, value in os.environ.items() if not key.endswith(("_BASE_URL", "_API_KEY", "_HOST"))}
    if CACHE in clean.get("XDG_CACHE_HOME", ""):  # the one of tests in this process, not one that a test has set
        del clean["XDG_CACHE_HOME"]
    return clean | {"HOME": str(home), "COLUMNS": "200"} | dict(more or {})


def loupe(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `loupe WORDS` in a folder until it ends; in a fresh interpreter if `env` sets what only its start reads."""
    settings = environment(cwd, env)
    if warm_command.interpreter_variables(settings) == warm_command.interpreter_variables(os.environ):
        return warm_command.run([*map(str, words)], cwd=str(cwd), environment=settings, timeout=120)
    return subprocess.run(
        command(*words), cwd=cwd, env=settings, capture_output=True, text=True, timeout=120, check=False
    )


def trusted(file: Path, *, home: Path | None = None) -> None:
    """What `loupe trust FILE --yes` does for who has this home; by default the folder of the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "_folder", lambda: (home or file.parent) / ".config" / "loupe" / "trusted")
        trust.remember(file)


def every_command(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, by the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        assert each is not None
        if isinstance(each, click.Group):
            yield from every_command(each, f"{path}{name} ")
        else:
            yield f"{path}{name}", each


def installed(rows: Iterable[tuple[T, ...]]) -> list[tuple[T, ...]]:
    """The commands, given as words, that there are: those of a feature may be gone."""
    known = root.list_commands(click.Context(root))
    return [words for words in rows if words[0] in known]


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test without this command: a feature may be gone."""
    return pytest.mark.skipif(not installed([(name,)]), reason=f"loupe {name} is not installed")


def needs_engine(name: str) -> pytest.MarkDecorator:
    """Skip a test without this engine: a feature may be gone."""
    return pytest.mark.skipif(name not in known_names(), reason=f"there is no engine {name}")


def needs_all_features() -> pytest.MarkDecorator:
    """Skip a test of documents that name every feature if one is gone."""
    page = Path(__file__).parents[2] / "docs/cli.md"
    documented = re.findall(r"(?m)^## `loupe (\w+)`", page.read_text("utf-8"))
    whole = len(installed((name,) for name in documented)) == len(documented) and "glm-ocr-pipeline" in known_names()
    return pytest.mark.skipif(not whole, reason="a feature is gone that documents name")


def complaint(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The two lines of an error, without their labels; fails if there is anything else."""
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: ") and hint.startswith("hint: ") and done.stdout == ""
    return error.removeprefix("error: "), hint.removeprefix("hint: ")


def make_folder(root: Path, *, name: str = "mydocs", count: int = 6) -> Path:
    """A benchmark folder of texts, and beside it `reader.py` with functions that read them."""
    folder = root / name
    folder.mkdir()
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "My texts"\nversion = "1"\n')
    words = ["alpha", "beta gamma", "delta", "epsilon zeta", "eta", "theta iota"]
    rows: list[dict[str, Any]] = [
        {"id": f"p{n}", "text": words[n % 6], "task": "text", "reference": words[n % 6], "tags": {"half": str(n % 2)}}
        for n in range(count)
    ]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "reader.py").write_text(READER)
    return folder


def at_a_terminal(here: Path, answer: str, *words: str) -> tuple[int, str]:
    """Exit code and output of `loupe WORDS` at a terminal where this is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*words), cwd=here, env=environment(here), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = bytearray()

    def read() -> None:
        for data in _until_closed(ours):
            said.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    os.write(ours, f"{answer}\n".encode())
    code = process.wait(timeout=60)
    reader.join(timeout=10)
    os.close(ours)
    return code, said.decode(errors="replace")


def _until_closed(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says so of a terminal whose other side is closed
            return
        if not data:
            return
        yield data
