"""The user's own folders: what may not be read counts as absent, for every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.cli import main
from loupe.data import trust
from loupe.data.user_folders import cache_folder, config_files, config_folder, unreadable, why_not_kept

#: Root reads everything, unless it gives up these rights.
_AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
_COMMANDS = (
    ["score", ".", "answers", "--runs", "runs"],
    ["run", ".", "-e", "predictions:answers", "--runs", "again"],
    *(["runs"], ["compare", "runs"], ["report", "runs", "-o", "r.html"], ["export", "runs", "--to", "csv"]),
    *(["engine", "list"], ["engine", "show", "tesseract"], ["bench", "list"], ["bench", "check", "."]),
    *(["bench", "suites"], ["data", "list"], ["trust", "--list"], ["reproduce"], ["synth", "made", "--pages", "1"]),
)
_RUN = """
import json, sys
from loupe.cli import main
for words in json.loads(sys.argv[1]):
    print("$", *words, file=sys.stderr, flush=True)
    print("=", main(words), file=sys.stderr, flush=True)
"""


def _closed(place: Path, name: str) -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    folder.chmod(0)
    return folder


@pytest.mark.parametrize("closed", ["home", "home/.config", "home/.cache/loupe"])
def test_no_command_stops_at_folders_of_somebody_else(tmp_path: Path, closed: str) -> None:
    """Containers run as a user whose HOME is root's: every command does its work and warns once."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root reads everything, and setpriv is missing")
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/a.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "samples.jsonl").write_text('{"id": "a", "text": "hi", "reference": "hello"}\n', encoding="utf-8")
    (tmp_path / "loupe.toml").write_text('[benchmark]\ntask = "text"\nversion = "1"\n', encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    folder = _closed(tmp_path, closed)
    commands = _COMMANDS if closed == "home" else _COMMANDS[:1] + _COMMANDS[6:7]
    hidden = ("XDG_CACHE_HOME", "LOUPE_DATA", "XDG_CONFIG_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [*(_AS_ANYBODY if os.geteuid() == 0 else []), sys.executable, "-c", _RUN, json.dumps(commands)],
        cwd=tmp_path,
        env=environment | {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
    )
    folder.chmod(0o700)
    parts = done.stderr.split("$ ")[1:]
    assert len(parts) == len(commands), done.stderr
    for part in parts:
        assert part.endswith("\n= 0\n"), part
        # One warning; `bench check` also names the folder, which lies in the folder of pages here.
        assert part.count("warning:") == part.count("may not be read: ") == 1, part
        assert "denied" not in part, part


def test_settings_are_found_where_docs_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles of the user's own, a cache by XDG_CACHE_HOME, and no home at all."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert config_files("engines/*.toml") == [] and unreadable() == ""
    (tmp_path / ".config/loupe/engines").mkdir(parents=True)
    (tmp_path / ".config/loupe/engines/mine.toml").write_text("", encoding="utf-8")
    assert [path.name for path in config_files("engines/*.toml")] == ["mine.toml"]
    assert cache_folder("data") == tmp_path / ".cache/loupe/data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other/loupe" and why_not_kept() == ""
    monkeypatch.setenv("HOME", "")
    monkeypatch.chdir(tmp_path)
    assert config_files("engines/*.toml") == []


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be written goes to a private folder, never to one that others may change."""
    (tmp_path / "cache").write_text("a file, no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert why_not_kept() and cache_folder("synth") == tmp_path / "cache/loupe/synth"
    stand_in = cache_folder("synth", to_write=True).parent
    assert stand_in.parent == tmp_path and stand_in.stat().st_mode & 0o777 == 0o700
    stand_in.chmod(0o777)
    assert cache_folder("synth", to_write=True) == Path("/dev/null/loupe/synth")
    stand_in.rmdir()
    stand_in.symlink_to(tmp_path)
    assert cache_folder("synth", to_write=True) == Path("/dev/null/loupe/synth")


def test_trust_that_cannot_be_kept_is_an_error_and_trust_kept_elsewhere_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(trust, "_SEEN", set())
    monkeypatch.setattr(trust, "_folder", lambda: config_folder("trusted"))
    monkeypatch.setattr("loupe.data.user_folders._is_closed", lambda folder: folder.name == "loupe")  # root reads all
    stand_in = tmp_path / f"loupe-of-user-{os.getuid()}"
    stand_in.write_text("a file, no folder", encoding="utf-8")
    assert main(["trust", "toy.py", "--yes"]) == 5
    said = capsys.readouterr().err
    private = f"{tmp_path}/.config/loupe may not be read, and no private folder can be made in {tmp_path}"
    assert f"error: toy.py stays untrusted: {private}\n" in said and "in its current form" not in said
    trust._SEEN.clear()
    stand_in.unlink()
    assert not trust.is_trusted(tmp_path / "toy.py") and main(["trust", "toy.py", "--yes"]) == 0
    assert f"{tmp_path}/.config/loupe may not be read; trust is kept in {stand_in}/trusted\n" in capsys.readouterr().err
    trust._SEEN.clear()
    assert trust.is_trusted(tmp_path / "toy.py")
