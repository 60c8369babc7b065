"""docs/cli.md says what the commands say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.command_line import needs_all_features

REPOSITORY = Path(__file__).parents[2]


@needs_all_features()
def test_the_page_equals_the_real_help(tmp_path: Path) -> None:
    script, made = REPOSITORY / "script" / "make_cli_docs.py", tmp_path / "cli.md"
    subprocess.run([sys.executable, script, made], check=True, env={**os.environ, "COLUMNS": "60"})
    assert made.read_text() == (REPOSITORY / "docs" / "cli.md").read_text(), "run: python script/make_cli_docs.py"


def test_every_variable_of_loupe_stands_in_the_one_table() -> None:
    """Marks that Loupe gives its own processes are not for users."""
    source = "".join(path.read_text("utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    table = (REPOSITORY / "docs/cli.md").read_text("utf-8").partition("## Environment")[2].partition("\n## ")[0]
    used = set(re.findall(r"\"(LOUPE_[A-Z_]+)\"", source)) - {"LOUPE_SERVER", "LOUPE_GIVEN_API_KEY"}
    assert used and used <= set(re.findall(r"LOUPE_[A-Z_]+", table))
