"""The official cases in the repository: small, plain, described, and all of them give the official numbers."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from loupe.cli import main
from loupe.errors import DatasetError
from loupe.scoring import oracles, parity
from tests.support.shared import shared

FOLDERS = sorted(path for path in oracles.FOLDER.iterdir() if path.is_dir())
SCRIPT = Path(__file__).parents[2] / "script" / "pack_oracles.py"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_archive_is_small_and_holds_plain_files_that_its_readme_names(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", oracles.ARCHIVE]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert (folder / oracles.ARCHIVE).stat().st_size < 1_000_000
    assert max(len(line) for line in readme.splitlines() if not line.startswith("|")) <= 140
    with tarfile.open(folder / oracles.ARCHIVE, "r:xz") as tar:
        members = tar.getmembers()
    for member in members:
        assert member.isreg() and member.size and not Path(member.name).is_absolute() and ".." not in member.name
        assert Path(member.name).stem in readme, f"{folder.name}/README.md does not say what {member.name} is"


def test_every_case_of_the_repository_gives_the_official_numbers() -> None:
    found = {one.benchmark: one for one in parity.verify(everything=True)}
    assert {name: one.differing for name, one in found.items() if one.differing or one.missing} == {}
    assert all(found[one.benchmark].cases >= one.cases for one in parity.verify())
    assert sum(one.cases for one in found.values()) > 3_500


def test_an_installed_package_says_where_all_cases_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(oracles, "FOLDER", tmp_path / "nowhere")
    assert main(["verify", "--all", "iam_lines"]) == 2
    said = capsys.readouterr().err
    assert "tests/oracles of a checkout" in said and "score the cases that come with the package: loupe verify" in said
    assert main(["verify", "iam_lines"]) == 0


def test_a_broken_archive_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracles, "FOLDER", tmp_path)
    (tmp_path / "cer_wer").mkdir()
    (tmp_path / "cer_wer" / oracles.ARCHIVE).write_bytes(b"\xfd7zXZ")
    for name in ("cer_wer/corpus.jsonl", "nothing/corpus.jsonl"):
        with pytest.raises(DatasetError, match=r"no corpus\.jsonl can be read"):
            oracles.oracle_cases(name)


def test_packing_again_changes_nothing(tmp_path: Path) -> None:
    shared("oracles/sizing")
    target = oracles.FOLDER / "sizing" / oracles.ARCHIVE
    before = target.read_bytes()
    done = subprocess.run([sys.executable, SCRIPT, "sizing"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith("sizing: 1 files") and done.stdout.rstrip().endswith("unchanged")
    assert target.read_bytes() == before
