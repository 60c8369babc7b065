"""The workflow files of docs/ci.md: their steps are run as they stand, with an engine that needs no network."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.command_line import environment

PAGE = Path(__file__).parents[2] / "docs/ci.md"
#: Reads the sample pages without looking; `worse` loses half of every text.
READER = """
import os
from loupe.benchmarks import get_benchmark

TEXTS = {sample.id: sample.truth for sample in get_benchmark("sample_pages").load(None)}

def read(request):
    text = str(TEXTS[request.id])
    return text[: len(text) // 2] if os.path.exists("worse") else text
"""


def documents() -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)]


def github() -> Iterator[tuple[str, bool]]:
    """The commands of the workflow, and whether they run after a failure, too."""
    (job,) = documents()[0]["jobs"].values()
    for step in job["steps"]:
        if "run" in step:
            yield step["run"], step.get("if") == "always()"
        else:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


def gitlab() -> Iterator[tuple[str, bool]]:
    (job,) = documents()[1].values()
    for line in job["script"]:
        yield line, False


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with `loupe` on the path of its own, and the baseline made as the page says."""
    program = tmp_path / "bin/loupe"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m loupe "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "reader.py").write_text(READER)
    (baseline,) = re.findall(r"^## Make a baseline.*?^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    for line in baseline.splitlines():
        done = run(line, tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A step as a CI system runs it, read by a function instead of RapidOCR."""
    script = script.replace("-e rapidocr", "-e python:reader.py:read")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = environment(folder, {"PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")})
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def job(steps: Iterator[tuple[str, bool]], folder: Path) -> int:
    """The exit code of a job: that of the first step that fails."""
    code = 0
    for script, always in steps:
        if script.startswith("pip install") or (code and not always):
            continue
        done = run(script, folder)
        code = code or done.returncode
    return code


def test_the_github_workflow_passes_on_an_engine_as_good_as_the_baseline(here: Path) -> None:
    assert job(github(), here) == 0
    assert "✅ **No regression.**" in (here / "summary.md").read_text("utf-8")
    assert ElementTree.parse(here / "compare.xml").getroot()[0].get("failures") == "0"
    assert (here / "report.html").exists() and (here / "run.xml").exists()


def test_the_github_workflow_fails_on_a_worse_engine_and_still_makes_the_report(here: Path) -> None:
    (here / "worse").touch()
    assert job(github(), here) == 1
    assert "❌ **" in (here / "summary.md").read_text("utf-8") and (here / "report.html").exists()


def test_the_gitlab_job_passes_and_fails_alike(here: Path) -> None:
    assert job(gitlab(), here) == 0
    (here / "worse").touch()
    for name in ("runs/candidate", "baseline"):
        shutil.rmtree(here / name)
    assert job(gitlab(), here) == 1
    for path in documents()[1]["ocr"]["artifacts"]["paths"]:
        assert (here / path).exists()
