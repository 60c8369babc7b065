"""`loupe load --json`: on standard output, or in a file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import loupe, make_folder


def test_figures_go_to_standard_output_or_to_a_file(tmp_path: Path) -> None:
    make_folder(tmp_path)
    words = ("load", "mydocs", "-e", "python:reader.py:right", "--sweep", "1", "--requests", "2", "--json")
    assert "levels" in json.loads(loupe(*words, cwd=tmp_path).stdout)
    assert loupe(*words, "load.json", cwd=tmp_path).returncode == 0
    assert "levels" in json.loads((tmp_path / "load.json").read_text())
