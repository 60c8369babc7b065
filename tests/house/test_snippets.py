"""Every Python example of the documents about Python runs, in order, in one folder; so do those of docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import loupe
import loupe.api

ROOT = Path(__file__).parents[2]
#: Trackers that no test needs, and another package that brings the same name.
_TRACKERS = {"torch": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}
#: A run without an engine, in place of the first example.
SCORED = 'import loupe\nrun = loupe.score("sample_pages", {"prose": "The Ferry Clock"}, runs="runs")'
MODULES = [
    "loupe",
    "loupe.runs.drawn",
    "loupe.engines.shared.functions",
    *(f"loupe.api.{found.name}" for found in pkgutil.iter_modules(loupe.api.__path__)),
]


def snippets(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def tracker_of(code: str) -> str:
    """The tracker that a snippet imports first, "" for most."""
    found = re.match(r"(?:import|from) (\w+)", code)
    return found[1] if found and found[1] in _TRACKERS else ""


def run_all(codes: list[str], page: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "__main__"}
    for number, code in enumerate(codes, 1):
        exec(compile(code, f"{page}, example {number}", "exec"), names)
    return names


def comments(code: str) -> list[str]:
    """What the comments behind the prints of a snippet promise."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)


def test_the_first_example_of_the_readme_is_that_of_the_page_and_prints_what_it_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, error = snippets("docs/python.md")[:2]
    assert snippets("README.md") == [first]
    run = run_all([first, error], "docs/python.md")["run"]
    assert isinstance(run, loupe.Run) and not run.failures and run.measures["cer"].high is not None
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in comments(first + error) if line not in printed] == [] and len(comments(first + error)) == 2


@pytest.mark.parametrize("page", ["docs/python.md", "docs/api.md"])
def test_every_python_example_of_a_document_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    codes = [code for code in snippets(page) if not tracker_of(code)]
    assert len(codes) >= 3
    run_all([SCORED, *codes[2:]] if page == "docs/python.md" else codes, page)  # the first two have a test of their own
    capsys.readouterr()


@pytest.mark.parametrize("tracker", _TRACKERS)
@pytest.mark.filterwarnings("ignore")
def test_the_example_of_a_tracker_runs(
    tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec(_TRACKERS[tracker]) is None:
        pytest.skip(f"SKIPPED: {_TRACKERS[tracker]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    [code] = [code for code in snippets("docs/python.md") if tracker_of(code) == tracker]
    if find_spec("torch") is None:
        code = code.replace("torch.utils.tensorboard", "tensorboardX")
    run_all([SCORED, code], f"docs/python.md, {tracker}")
    assert {path.name for path in tmp_path.iterdir()} > {"runs"}
    capsys.readouterr()


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_list_of_public_names_is_the_one_of_the_document() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    table = text.partition("## The namespace")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert named == set(loupe.__all__)
    assert all(hasattr(loupe, name) for name in named)
