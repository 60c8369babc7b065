"""Files that are made new, all or none, and never in the place of another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loupe.errors import DatasetError, WriteError
from loupe.runs.files import write_all_or_none, write_atomically


@pytest.mark.parametrize("links", [True, False])
def test_new_files_are_made_all_or_none_and_what_was_there_stays(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(1, "no links here")

        monkeypatch.setattr(os, "link", refused)
    (tmp_path / "kept").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to("gone")
    there = sorted(tmp_path.iterdir())
    for names in (("kept", "folder"), ("new", "kept"), ("new", "nowhere"), ("new", "folder")):
        with pytest.raises(DatasetError, match="file exists; nothing was written") as refusal:
            write_all_or_none({tmp_path / name: b"new" for name in names})
        assert refusal.value.hint == "move away what is there"
        assert sorted(tmp_path.iterdir()) == there and (tmp_path / "kept").read_text() == "precious"
    with pytest.raises(WriteError, match="cannot be written: no such file or directory"):
        write_all_or_none({tmp_path / "a": b"1", tmp_path / "missing" / "b": b"2"})
    write_all_or_none({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert sorted(tmp_path.iterdir()) == sorted([*there, tmp_path / "a", tmp_path / "b"])
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"1", b"2")


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError):
        write_atomically(tmp_path / "run.json", b"1")
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]
