"""Mutated folders, data, profiles, images, PDFs and archives through the commands that open them: nothing gets out.

`python -m tests.hostile --count 20000` does the same with many more (docs/security.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import mutations, planted
from tests.hostile.targets import TARGETS

ROOT = Path(__file__).parents[2]
CASES = 12


def hunt(*words: str) -> tuple[int, list[dict[str, str]], str]:
    command = [sys.executable, "-m", "tests.hostile", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_mutated_files_of_every_kind_get_nothing_out_and_break_nothing(target: str) -> None:
    code, findings, said = hunt("--target", target, "--count", str(CASES), "--start", "5000", "--jobs", "1")
    assert (findings, code) == ([], 0), said


def test_the_harness_finds_what_engines_do_on_purpose() -> None:
    _, findings, said = hunt("--target", "planted", "--count", "30", "--jobs", "2")
    found = {(line["words"].partition("--name ")[2], line["kind"]) for line in findings}
    wanted = {(kind, kind) for kind in planted.KINDS} - {("none", "none")}
    assert wanted <= found, said
    assert not {kind for name, kind in found if name == "none"}


def test_a_case_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        tree = tmp_path / name
        for number in range(60):
            folder = tree / str(number)
            folder.mkdir(parents=True)
            for file in ("a.json", "b.jsonl", "c.toml", "d.txt", "e.png"):
                (folder / file).write_text('{"a": [1, {"b": "c"}]}\n' * 2)
            mutations.mutate(mutations.random.Random(number), folder, tmp_path / "canary")
        found = {}
        for path in mutations.entries(tree):
            linked = str(path.readlink()) if path.is_symlink() else ""
            regular = path.is_file() and not linked and path.stat().st_size < 5_000_000
            found[str(path.relative_to(tree))] = (linked, path.read_bytes() if regular else b"")
        trees.append(found)
    assert trees[0] == trees[1] and len(trees[0]) > 300
