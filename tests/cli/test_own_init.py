"""What `loupe init` makes of settings that are there, of full disks and of odd names."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest
from PIL import Image

from loupe.benchmarks.folders.own import check_folder
from loupe.benchmarks.folders.own.starting import Beginning, begin, find_documents
from loupe.errors import WriteError
from tests.support.command_line import loupe


def test_settings_that_are_there_are_taken_and_only_samples_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    (folder / "Letter").mkdir(parents=True)
    for name in ("a.png", "Letter/b\u00a0.png"):
        Image.new("L", (9, 9)).save(folder / name)
    (folder / "loupe.toml").write_text("[engines.mine]\nkind = 'python'\n")
    done = loupe("init", "mail", cwd=tmp_path)
    assert done.returncode == 2 and "mail/loupe.toml does not say what is asked" in done.stderr
    written = '[benchmark]\ntask = "class"\nlabels = ["invoice", "letter"]\n'
    (folder / "loupe.toml").write_text(written)
    refused = loupe("init", "mail", "--task", "text", cwd=tmp_path)
    assert refused.returncode == 2 and "hint: loupe init mail uses it: drop --task" in refused.stderr
    done = loupe("init", "mail", "--task", "class", cwd=tmp_path)
    assert done.returncode == 0 and "wrote mail/samples.jsonl, as mail/loupe.toml asks" in done.stderr, done.stderr
    assert (folder / "loupe.toml").read_text() == written
    written_lines = (folder / "samples.jsonl").read_text("utf-8").splitlines()
    assert [(line["id"], line["reference"]) for line in map(json.loads, written_lines)] == [
        ("Letter/b", "letter"),
        ("a", None),
    ]
    assert check_folder(folder) == []


def test_a_full_disk_leaves_nothing_half_written_and_odd_names_are_written(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    for number in range(20):
        Image.new("L", (9, 9)).save(folder / f"{number:060d}.png")
    pages = sorted(folder.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(WriteError, match="larger than the system allows"):
            begin(folder, find_documents(folder), Beginning(task="text"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(folder.iterdir()) == pages
    done = loupe("init", ".", "--task", "text", cwd=folder)
    assert done.returncode == 0 and "20 samples" in done.stdout, done.stderr
    assert check_folder(folder) == []
