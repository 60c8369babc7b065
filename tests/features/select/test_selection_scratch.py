"""The folder of one selection: gone at its end, and gone with the next one where a selection was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from loupe.files import scratch
from loupe.files.scratch import scratch_folder

PREFIX = "loupe-select-"

HOLD = """
import sys
from loupe.files.scratch import scratch_folder
with scratch_folder("loupe-select-") as folder:
    (folder / "0.jpg").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_pictures_of_a_killed_selection_go_and_those_of_a_running_one_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    strange = tmp_path / f"{PREFIX}not-ours"
    strange.mkdir()
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    other = Path(process.stdout.readline().strip())
    assert other.parent == tmp_path
    with scratch_folder(PREFIX) as own:
        assert own.is_dir() and (other / "0.jpg").exists()
    process.kill()
    process.communicate()
    assert (other / "0.jpg").exists() and not own.exists()
    scratch._sweep_once.cache_clear()  # as in the next process
    with scratch_folder(PREFIX):
        assert not other.exists() and strange.is_dir()
