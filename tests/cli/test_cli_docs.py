"""docs/cli.md says what the commands say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_page_equals_the_real_help(tmp_path: Path) -> None:
    script, made = REPOSITORY / "script" / "make_cli_docs.py", tmp_path / "cli.md"
    subprocess.run([sys.executable, script, made], check=True, env={**os.environ, "COLUMNS": "60"})
    assert made.read_text() == (REPOSITORY / "docs" / "cli.md").read_text(), "run: python script/make_cli_docs.py"
