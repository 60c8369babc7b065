"""What a user installs: little, quick to start, whole, and the same version everywhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import loupe
from tests.support.command_line import needs

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras of gigabytes, and what few need.
VENDORS = ("layout", "ray")
PINS = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
#: Slow to import, or not in the core: none of these may stand between a user and the help.
HEAVY = {"PIL", "aiohttp", "cv2", "jinja2", "markdown_it", "nh3", "numpy", "onnxruntime", "openai", "pybase64"}
HEAVY |= {"playwright", "pypdfium2", "rapidfuzz", "rapidocr", "ray", "rich", "starlette", "uvicorn"}
#: What a core installation never brings.
UNWANTED = {"torch", "tensorflow", "pandas", "scipy", "matplotlib", "onnxruntime", "opencv-python", "playwright"}
UNWANTED |= {"starlette", "uvicorn"}
MOST_PACKAGES = 35


@pytest.mark.parametrize(
    "words",
    [
        *("--help", "--version", "run --help", "score --help", "review tests --help"),
        pytest.param("serve --help", marks=needs("serve")),
    ],
)
def test_the_help_imports_nothing_heavy(words: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "loupe", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert imported & HEAVY == set()


def test_the_core_brings_few_packages_and_none_of_the_heavy_ones() -> None:
    needed = {"loupe-ocr", *brought_by(PROJECT["dependencies"])}
    assert "numpy" in needed
    assert len(needed) <= MOST_PACKAGES
    assert needed & UNWANTED == set()


def brought_by(lines: list[str]) -> set[str]:
    """These requirements and everything that they require in turn, as installed here."""
    found: set[str] = set()
    open_lines = [(line, "") for line in lines]
    while open_lines:
        line, extra = open_lines.pop()
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        found.add(name)
        for wanted in requirement.extras or {""}:
            open_lines += [(further, wanted) for further in metadata.requires(requirement.name) or []]
    return found


def test_the_version_is_the_same_in_package_metadata_command_and_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    command = subprocess.run([sys.executable, "-m", "loupe", "--version"], capture_output=True, text=True, check=True)
    newest = re.findall(r"^## \[?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)[0]
    assert {loupe.__version__, metadata.version("loupe-ocr"), command.stdout.split()[1], newest} == {loupe.__version__}


def test_the_extra_all_holds_every_extra_but_the_one_for_development() -> None:
    extras = PROJECT["optional-dependencies"]
    together = {name for line in extras["all"] for name in Requirement(line).extras}
    former = {name for name, lines in extras.items() if not lines}
    assert together == extras.keys() - {"all", "dev", "perf", *VENDORS} - former


def test_every_python_from_3_11_to_3_14_is_promised() -> None:
    promised = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if " :: Python :: 3." in line}
    assert promised == {"3.11", "3.12", "3.13", "3.14"}
    assert PROJECT["requires-python"] == ">=3.11"


def test_nothing_raises_inside_an_except_star_clause() -> None:
    # Before Python 3.11.4 what is raised there is wrapped in a group, which no handler of ours expects (gh-103590).
    trees = {path: ast.parse(path.read_bytes()) for path in (ROOT / "src").rglob("*.py")}
    assert not [
        f"{path}:{node.lineno}"
        for path, tree in trees.items()
        for clause in ast.walk(tree)
        if isinstance(clause, ast.TryStar)
        for handler in clause.handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise)
    ]


def test_every_pin_has_a_hash_and_names_no_index() -> None:
    entries = re.split(r"^(?=[a-z0-9])", PINS, flags=re.MULTILINE)[1:]
    assert len(entries) > len(PROJECT["dependencies"])
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"://|index-url|find-links|^file:", PINS, re.MULTILINE) == []


def test_every_requirement_of_the_project_is_pinned_at_a_version_that_it_allows() -> None:
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", PINS, re.MULTILINE))
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in ("perf", *VENDORS)}
    lines = [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]
    wanted = [requirement for requirement in map(Requirement, lines) if requirement.name != "loupe-ocr"]
    assert [str(each) for each in wanted if not each.specifier.contains(pins[canonicalize_name(each.name)])] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_every_file_of_the_package_and_its_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {path for path in (ROOT / "src/loupe").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    missing = {path.relative_to(ROOT / "src").as_posix() for path in sources} - names
    assert {name for name in missing if not name.endswith((".pyc", ".swp"))} == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    [notice] = [name for name in names if name.endswith("licenses/LICENSES/Unicode-3.0.txt")]
    [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
    archive = zipfile.ZipFile(wheel)
    assert "\nLicense-Expression: Apache-2.0 AND Unicode-3.0\n" in archive.read(metadata).decode()
    stated = re.findall(r"^# ?(.*)$", archive.read("loupe/metrics/date_words.py").decode(), re.MULTILINE)
    text = archive.read(notice).decode().split("\n")
    assert stated[: len(text) - 1] == text[:-1], "the notice in the code is the one of the file"
    words = zipfile.ZipFile(wheel).read("loupe/metrics/date_words.py").decode()
    assert "Derived data" in words and "Permission is hereby granted" in words and "Copyright © 2004-" in words
    assert any(name.endswith("profiles/rapidocr.toml") for name in names)


def test_the_wheel_reads_a_sample_page_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "HOME": str(tmp_path)}
    where = [sys.executable, "-c", "import loupe; print(loupe.__file__)"]
    words = ["run", "sample_pages", "-e", "pdf_text", "--plain"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "loupe", *words],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/pdf_text/sample_pages/result.json").is_file()


def bound_names(package: str, init: Path) -> set[str]:
    """What the `__init__.py` of a package defines, or imports at its top from anywhere but its own modules."""
    found: set[str] = set()
    for node in ast.parse(init.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module != package:
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def test_no_module_hides_a_name_of_its_package() -> None:
    """Importing `x/tables.py` would replace a function `tables` that `x/__init__.py` uses."""
    source = Path(loupe.__file__).parent
    hidden = []
    # `loupe.metrics` names functions as their modules, and imports these modules itself, before anybody else can.
    for init in sorted(set(source.rglob("__init__.py")) - {source / "metrics/__init__.py"}):
        package = ".".join(init.parent.relative_to(source.parent).parts)
        modules = {path.stem for path in init.parent.glob("*.py")} | {
            path.parent.name for path in init.parent.glob("*/__init__.py")
        }
        hidden += [f"{package}.{name}" for name in bound_names(package, init) & modules]
    assert hidden == []
