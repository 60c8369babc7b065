"""What a release rests on: workflows that can be read, one version everywhere, an image without rights."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from script.test_installs import INSTALLS

import loupe

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: Path) -> dict[Any, Any]:
    found = pytest.importorskip("yaml").safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_scripts_that_exist_with_few_rights_and_pinned_actions(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"} and True in workflow  # YAML reads `on` as true
    for job in workflow["jobs"].values():
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"]) and job["timeout-minutes"]
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
            else:
                for script in re.findall(r"script/[\w-]+", step["run"]):
                    assert (ROOT / script).stat().st_mode & 0o111, script


def test_ci_covers_every_python_system_and_extra() -> None:
    jobs = read(ROOT / ".github/workflows/tests.yml")["jobs"]
    matrix = jobs["tests"]["strategy"]["matrix"]
    classifiers = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert matrix["python"] == classifiers
    assert matrix["system"] == jobs["installs"]["strategy"]["matrix"]["system"] == ["ubuntu-latest", "macos-latest"]
    assert set(jobs["installs"]["strategy"]["matrix"]["install"]) == set(INSTALLS)


def test_only_the_job_that_publishes_may_prove_who_it_is() -> None:
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
    assert jobs["publish"]["environment"] == "pypi" and jobs["publish"]["needs"] == "build"


def test_the_version_is_the_same_everywhere() -> None:
    (heading, *_) = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert re.fullmatch(rf"{re.escape(loupe.__version__)} \((not released yet|\d{{4}}-\d\d-\d\d)\)", heading)
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == loupe.__version__ and citation["license"] in PROJECT["license"]


def test_issue_forms_ask_for_what_is_needed() -> None:
    forms = [read(path) for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
    assert len(forms) == 3
    for form in forms:
        assert form["name"] and form["description"]
        assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_the_image_is_slim_runs_without_rights_and_copies_only_what_it_needs() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"python:3.13-slim"}
    last = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line[:1].isupper()}
    assert last["USER"] == "1000" and last["ENTRYPOINT"] == '["loupe"]' and last["CMD"] == '["demo"]'
    (copied,) = [line.split()[1:-1] for line in lines if line.startswith("COPY pyproject.toml")]
    allowed = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert allowed[0] == "*" and {f"!{name}" for name in (*copied, "LICENSES", "src")} <= set(allowed)


def test_a_tag_of_another_version_is_refused_before_anything_is_built() -> None:
    done = subprocess.run([ROOT / "script/release", "v0.0.0"], capture_output=True, text=True, check=False)
    assert (
        done.returncode == 1 and f"the tag is v0.0.0, but src/loupe/__init__.py says {loupe.__version__}" in done.stderr
    )
