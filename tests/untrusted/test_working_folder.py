"""No process of ours imports anything from the working folder, or from the folder that it opens: both may be anybody's.

The console script is run, as users do. (`python -m loupe` looks into the working folder before any code of ours runs.)
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.command_line import environment, installed, make_folder, needs
from tests.support.web.review_app import address_of

LOUPE = Path(sys.executable).with_name("loupe")
#: Every module of Python's, every package that is installed, and what Python looks for when it starts.
NAMES = sorted(
    name
    for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "olefile"}
    if name.isidentifier()
)


def plant(folder: Path, marks: Path) -> None:
    """A file for each module that could be imported, which leaves a mark when it is."""
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\nraise ImportError('planted')\n")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and a run that its author made, full of planted modules wherever one may stand."""
    here = tmp_path_factory.mktemp("foreign")
    make_folder(here)
    (here / "home").mkdir()
    done = run(here, "run", "sample_pages", "-e", "pdf_text", "--limit", "2")
    assert done.returncode in (0, 3), done.stderr
    (here / "marks").mkdir()
    for folder in (here, here / "mydocs", here / "runs", *(here / "runs").glob("*"), *(here / "runs").glob("*/*")):
        plant(folder, here / "marks")
    return here


def marks(foreign: Path) -> list[str]:
    """What was imported since this was asked last."""
    found = list((foreign / "marks").iterdir())
    for mark in found:
        mark.unlink()
    return sorted(mark.name for mark in found)


def run(here: Path, *words: str, folder: str = ".", **more: str) -> subprocess.CompletedProcess[str]:
    """`loupe WORDS` in a folder, until it ends."""
    env = environment(here.parent / here.name / "home", {"XDG_CACHE_HOME": str(here / "home"), **more})
    return subprocess.run(
        [LOUPE, *words], cwd=here / folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


RUN = "runs/pdf_text/sample_pages"
COMMANDS = installed(
    [
        ("run", "mydocs", "-e", "python:{home}/reader.py:right"),
        ("run", "sample_pages", "-e", "tesseract", "--limit", "1"),
        ("run", "sample_pages", "-e", "rapidocr", "--limit", "1"),
        ("demo", "--limit", "1", "--runs", "demo"),
        ("infer", "sample_pages", "-e", "pdf_text", "--limit", "2", "--fresh"),
        ("score", RUN),
        ("report", RUN, "-o", "out.html"),
        ("export", RUN),
        ("lint", RUN),
        ("compare", RUN, RUN),
        ("runs",),
        ("reproduce",),
        ("verify", "teds_test"),
        ("bench", "check", "mydocs"),
        ("bench", "show", "mydocs"),
        ("bench", "list"),
        ("engine", "list"),
        ("engine", "test", "pdf_text"),
        ("draft", "mydocs", "-e", "pdf_text"),
        ("data", "list"),
        ("size",),
        ("doctor",),
    ]
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:4]))
def test_no_command_imports_what_was_planted(foreign: Path, words: tuple[str, ...]) -> None:
    (foreign / "home" / "reader.py").write_text((foreign / "reader.py").read_text())
    done = run(foreign, *(word.format(home=foreign / "home") for word in words))
    assert marks(foreign) == []
    assert "Traceback" not in done.stderr and "planted" not in done.stderr + done.stdout, done.stderr


@pytest.mark.parametrize("words", [("report", ".", "-o", "out.html"), ("score", "."), ("export", ".")], ids=str)
def test_a_run_folder_can_be_the_working_folder(foreign: Path, words: tuple[str, ...]) -> None:
    done = run(foreign, *words, folder=RUN)
    failed = 3 if words[0] == "score" else 0  # no page of this run was read
    assert (marks(foreign), done.returncode) == ([], failed), done.stderr


def started(foreign: Path, *words: str) -> subprocess.Popen[str]:
    """A server that `loupe WORDS` starts in the run's folder."""
    env = environment(foreign / "home", {"PYTHONUNBUFFERED": "1"})
    return subprocess.Popen(
        [LOUPE, *words], cwd=foreign / RUN, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_viewer_and_its_processes_import_nothing_that_was_planted(foreign: Path) -> None:
    with address_of(started(foreign, "view", ".", "--no-browser")) as view:
        board = re.findall(r'href="(/b/[^"/?]+)"', view.ask("/")[2].decode())[0]
        sample = re.findall(r'href="/b/[^"]+[?&;]id=([^"&]+)"', view.ask(f"{board}/samples")[2].decode())
        status, _, body = view.ask(f"{board}/payload?id={sample[0] if sample else 'page-01'}")
        assert (status, bool(body)) == (200, True), body
    assert marks(foreign) == []


def test_the_review_and_its_processes_import_nothing_that_was_planted(foreign: Path) -> None:
    with address_of(started(foreign, "review", "../../../mydocs", "--no-browser")) as review:
        assert review.ask("/")[0] == 200
    assert marks(foreign) == []


@needs("serve")
def test_the_server_of_an_engine_imports_nothing_that_was_planted(foreign: Path) -> None:
    process = started(foreign, "serve", "pdf_text", "--port", "0")
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    try:
        with urllib.request.urlopen(f"{address.removesuffix('/v1')}/v1/models", timeout=10) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert marks(foreign) == [], said


@pytest.mark.parametrize("function", ["python:{cwd}/ours.py:read", "python:ours:read"])
def test_a_function_that_the_user_names_imports_what_lies_beside_it_and_hides_nothing(
    foreign: Path, function: str
) -> None:
    (foreign / "ours.py").write_text("import colorsys, beside\ndef read(request):\n    return beside.WORD\n")
    (foreign / "beside.py").write_text("WORD = 'alpha'\n")
    done = run(foreign, "run", "mydocs", "-e", function.format(cwd=foreign), "--name", "ours", "--fresh")
    assert (marks(foreign), done.returncode) == ([], 0), done.stderr


@pytest.mark.parametrize("path", ["{cwd}", ".", ":/nowhere", "mydocs"])
def test_what_pythonpath_says_of_the_working_folder_is_not_handed_on(foreign: Path, path: str) -> None:
    """Python itself looks there when it starts, which nobody can help; no process that we start does."""
    early = subprocess.run(
        [sys.executable, "-c", "import sys, re; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    clean = foreign / "clean"
    for place in (clean, clean / "mydocs"):
        place.mkdir(exist_ok=True)
        plant(place, foreign / "marks")
        for name in {*early.stdout.split(), "sitecustomize", "usercustomize"}:
            (place / f"{name}.py").unlink(missing_ok=True)
    done = run(foreign, "report", f"../{RUN}", "-o", "out.html", folder="clean", PYTHONPATH=path.format(cwd=clean))
    assert (marks(foreign), done.returncode) == ([], 0), done.stderr
