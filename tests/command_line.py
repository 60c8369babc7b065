"""The real command in a real process, as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def loupe(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `loupe WORDS` in a folder, away from the settings and servers of the person who runs the tests."""
    clean = {key: value for key, value in os.environ.items() if not key.endswith(("_BASE_URL", "_API_KEY", "_HOST"))}
    clean |= {"HOME": str(cwd), "COLUMNS": "200", **(env or {})}
    return subprocess.run(
        [sys.executable, "-m", "loupe", *map(str, words)],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def complaint(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The two lines of an error, without their labels; fails if there is anything else."""
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: ") and hint.startswith("hint: ") and done.stdout == ""
    return error.removeprefix("error: "), hint.removeprefix("hint: ")
