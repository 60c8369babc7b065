"""Features are found and can be taken away; what other packages add is found by the same mechanism."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import loupe
from loupe import hooks
from loupe.benchmarks.registry import get_benchmark

PACKAGE = Path(loupe.__file__).parent
FEATURES = sorted(path.parent.name for path in PACKAGE.glob("features/*/__init__.py"))
#: In one process: the commands of the lines on standard input, each with the code that it ends with.
SEVERAL = """
import sys
sys.path.insert(0, sys.argv[1])
from loupe.cli import main
for line in sys.stdin:
    print(f"{line.strip()}: {main(line.split())}")
"""


def several(lines: list[str], place: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands with what is importable from a place before all else."""
    words = [sys.executable, "-P", "-c", SEVERAL, str(place)]
    return subprocess.run(words, input="\n".join(lines), cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_says_what_it_adds_and_imports_nothing(name: str) -> None:
    tree = ast.parse((PACKAGE / "features" / name / "__init__.py").read_text())
    assert [type(each) for each in tree.body] in ([ast.Expr, ast.Assign], [ast.Expr, ast.AnnAssign])
    table = importlib.import_module(f"loupe.features.{name}").HOOKS
    for group in table.keys() - {"help"}:
        for hook, place in table[group].items():
            assert f"{place}.".startswith((f"loupe.features.{name}.", f"loupe.features.{name}:"))
            assert hooks.found(group)[hook].load() is not None
    assert table.get("help", {}).keys() == table.get("commands", {}).keys()


def test_the_core_names_no_command_and_no_module_of_a_feature() -> None:
    tables = [importlib.import_module(f"loupe.features.{name}").HOOKS for name in FEATURES]
    commands = "|".join(name for table in tables for name in table.get("commands", {}))
    named = re.compile(rf"loupe (run )?({commands})\b|features[./](?!json)({'|'.join(FEATURES)})\b")
    found = [
        f"{path.relative_to(PACKAGE)}: {each[0]}"
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".html", ".js", ".toml") and PACKAGE / "features" not in path.parents
        for each in named.finditer(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The right answers to two sample pages, as files."""
    folder = tmp_path_factory.mktemp("x") / "answers"
    folder.mkdir()
    for sample, _ in zip(get_benchmark("sample_pages").load(None), range(2), strict=False):
        (folder / f"{sample.id}.txt").write_text(str(sample.truth))
    return folder


@pytest.mark.parametrize("name", FEATURES)
def test_loupe_works_without_the_folder_of_a_feature(name: str, answers: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "loupe/features").mkdir(parents=True)
    for each in PACKAGE.iterdir():
        if each.name not in ("features", "__pycache__"):
            (place / "loupe" / each.name).symlink_to(each)
    for each in (PACKAGE / "features").iterdir():
        if each.name not in (name, "__pycache__"):
            (place / "loupe/features" / each.name).symlink_to(each)
    lines = ["--help", "bench list", "engine list", "run --help"]
    lines += [
        f"run sample_pages -e predictions:{answers} --limit 2 --plain",
        "report runs/predictions-answers/sample_pages -o page.html",
    ]
    commands = sys.modules[f"loupe.features.{name}"].HOOKS.get("commands", {})
    done = several([*lines, *(f"{command} --help" for command in commands)], place, tmp_path)
    ended = [line.rpartition(": ") for line in done.stdout.splitlines()]
    assert {line: code for line, _, code in ended if line in lines} == dict.fromkeys(lines, "0"), done.stderr
    assert "Traceback" not in done.stderr
    for command in commands:
        assert f"{command} --help: 2" in done.stdout and f"no command {command!r}" in done.stderr
        assert f"\n  {command} " not in done.stdout
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_other_packages_add_by_entry_points_what_features_add(tmp_path: Path) -> None:
    info = tmp_path / "place" / "neighbour-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.0\nSummary: Weigh pages.\n")
    points = {
        "commands": {
            "weigh": "neighbour:weigh",
            "heavy": "neighbour.nothing:x",
            "odd": "neighbour:odd",
            "run": "neighbour:weigh",
        },
        "benchmarks": {"mine": "neighbour:benchmark", "gone": "neighbour:gone", "textvqa": "neighbour:benchmark"},
        "engines": {"echo": "neighbour", "mute": "silent"},
    }
    written = [
        f"[loupe.{group}]\n" + "\n".join(f"{n} = {p}" for n, p in rows.items()) for group, rows in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(written))
    (tmp_path / "place/silent.py").write_text("1 / 0")
    (tmp_path / "place/neighbour.py").write_text(
        '''"""Echo what stands there."""
import click
from contextlib import asynccontextmanager
from loupe.benchmarks.registry import get_benchmark
from loupe.engines.registry import Profile
from loupe.types import Engine, Output

benchmark = get_benchmark("sample_pages")
odd = 5
class Settings(Profile, kw_only=True, frozen=True):
    gives = frozenset({"text"})
async def predict(request):
    return Output(text="echo")
@asynccontextmanager
async def open_engine(settings):
    yield Engine(predict=predict)
@click.command("weigh")
def weigh():
    click.echo("3 kg")
'''
    )
    lines = ["--help", "weigh", "heavy", "odd", "bench list", "bench show gone", "engine list --plain", "run --help"]
    lines += ["run mine -e echo --limit 1 --plain", "run mine -e mute --limit 1"]
    done = several(lines, tmp_path / "place", tmp_path)
    ended = [line.rpartition(": ") for line in done.stdout.splitlines()]
    codes = {line: int(code) for line, _, code in ended if line in lines}
    expected = dict.fromkeys(lines, 0) | {"heavy": 4, "odd": 4, "bench show gone": 4, "run mine -e mute --limit 1": 4}
    assert codes == expected, done.stderr
    assert "From other packages:" in done.stdout and "From the package neighbour: Weigh pages." in done.stdout
    assert "\n3 kg\n" in done.stdout and "\nmine" in done.stdout and "Traceback" not in done.stderr
    broken = "of the package neighbour cannot be used"
    assert f"error: 'heavy' {broken} (neighbour.nothing:x): ModuleNotFoundError" in done.stderr
    assert done.stderr.count("warning: 'run' of the package neighbour is left out") == 1
    assert done.stderr.count("warning: 'textvqa' of the package neighbour is left out") == 1
    assert done.stderr.count(f"warning: left out: 'gone' {broken}") == 1
    assert f"unusable: 'mute' {broken} (silent): ZeroDivisionError" in done.stdout
    (run,) = (tmp_path / "runs").rglob("run.json")
    assert json.loads(run.read_text())["benchmark"] == "mine"
