"""Run the tests nearest to what changed since the last commit on main, for at most a minute.

    script/test --quick [PYTEST OPTIONS]

Changed are files that differ from where this branch left main, or from the last commit on main itself, and new files.
Nearest are changed test files, then tests that import a changed module, then tests that import its importers, and so
on. A test file of the folder named like the changed module's package counts as two steps away: it may start the command
instead of importing the module. Among equals, those that share words with the changed module's name come first.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 45.0
#: Steps along imports, from a changed module to a test file.
FURTHEST = 3


class TimeLimit:
    """Stops a session that has run for its time, between two tests."""

    def __init__(self) -> None:
        self.end = time.monotonic() + SECONDS
        self.ran: set[str] = set()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note the file; end the session if its time is over."""
        self.ran.add(nodeid.partition("::")[0])
        if time.monotonic() > self.end:
            pytest.exit(f"{SECONDS:.0f} s are over", returncode=0)


def changed_files() -> list[str]:
    """Return the changed and new files, relative to the root."""
    base = _git("merge-base", "HEAD", "main")[0] if _git("branch", "--list", "main") else "HEAD"
    return sorted({*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def nearest_tests(changed: list[str]) -> list[str]:
    """Return test files, those nearest to the changed files first."""
    graph = grimp.build_graph("loupe", "tests", cache_dir=str(ROOT / ".import_linter_cache"))
    steps: dict[str, int] = {}
    words = {word for name in changed for word in Path(name).stem.split("_")}
    for name in changed:
        path = Path(name)
        if path.suffix == ".md":
            steps["tests.house.test_docs"] = 0
        elif path.parts[:2] == ("src", "loupe") or path.parts[0] == "tests":
            _walk(graph, _module(path, graph), steps)
    files = {module: ROOT / Path(*module.split(".")).with_suffix(".py") for module in steps}
    found = {module: file for module, file in files.items() if file.name.startswith("test_") and file.is_file()}
    order = sorted(found, key=lambda each: (steps[each], -len(words & set(found[each].stem.split("_"))), each))
    return [str(found[module].relative_to(ROOT)) for module in order]


def _module(path: Path, graph: grimp.ImportGraph) -> str:
    """Return the module of a file; for a file that is no Python, or is gone, the nearest package above it."""
    parts = path.with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    while parts and ".".join(parts) not in graph.modules:
        parts = parts[:-1]
    return ".".join(parts)


def _walk(graph: grimp.ImportGraph, start: str, steps: dict[str, int]) -> None:
    """Note the steps from a module to all that import it, and to the tests of its package."""
    near = {start}
    for distance in range(FURTHEST + 1):
        for module in near:
            steps[module] = min(distance, steps.get(module, distance))
        near = {each for module in near for each in graph.find_modules_that_directly_import(module)}
        if distance == 1 and start.startswith("loupe."):
            packages = start.split(".")[1:]
            near |= {each for each in graph.modules if each.startswith(f"tests.{'.'.join(packages[:1])}.")}


def main() -> int:
    """Run the tests and return the exit status of pytest."""
    files = nearest_tests(changed_files())
    if not files:
        print("quick: no test is near what changed; `script/test` runs all")
        return 0
    limit = TimeLimit()
    status = pytest.main([*files, "-n", "auto", "--dist", "loadfile", *sys.argv[1:]], plugins=[limit])
    print(f"quick: {len(limit.ran)} of {len(files)} test files near what changed; `script/test` runs all")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
