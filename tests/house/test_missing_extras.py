"""Without any extra, commands work or name the line that installs what they need; documents say what extras are for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from script.test_installs import ROOT, fill

from loupe.cli.shared.errors import describe
from loupe.data.extras import EXTRAS
from tests.support.command_line import needs_all_features

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Benchmarks with all that extras ever brought: tables, matching, formulas, words, passages, facts.
NAMES = ("dp_bench", "omnidocbench", "mdpbench", "olmocr_bench", "fox", "ocrbench_v2")


@needs_all_features()
def test_commands_work_without_extras_or_name_the_one_that_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    fill(folder, NAMES)
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    words = [sys.executable, ROOT / "script/try_commands.py", folder, "", "--hide"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_that_nobody_asked_for_before_is_named_with_its_extra_and_is_no_bug() -> None:
    found = describe(ModuleNotFoundError("No module named 'nltk.translate'", name="nltk.translate"))
    assert found and found.exit_code == 4 and found.message == "the package nltk.translate is not installed"
    assert found.hint.endswith("[fox]'")
    core = describe(ModuleNotFoundError("No module named 'lxml'", name="lxml"))
    assert core and core.exit_code == 4 and "--force-reinstall" in core.hint
    assert describe(ModuleNotFoundError("No module named 'loupe.nothing'", name="loupe.nothing")) is None


def test_extras_are_those_of_the_project_and_installing_says_the_same_of_each() -> None:
    together = re.search(r"\[(.*)\]", PROJECT["optional-dependencies"]["all"][0])
    assert together and EXTRAS.keys() == {*together[1].split(","), "ray"}
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    for name, extra in EXTRAS.items():
        assert f"| `{name}` | {extra.purpose} |" in page


@pytest.mark.parametrize("name", EXTRAS)
def test_modules_of_an_extra_are_those_of_its_packages(name: str) -> None:
    packages = {re.split(r"[^\w-]", line)[0] for line in PROJECT["optional-dependencies"][name]}
    assert {package.replace("-", "_") for package in packages} == set(EXTRAS[name].modules)
