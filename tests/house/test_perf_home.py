"""Measurements leave the settings of who runs them alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import environment

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "harness_overhead": ("--pages", "4", "--repeats", "1", "--concurrency", "2", "--small", "0"),
    "report_size": ("--samples", "3"),
    "view_speed": ("--samples", "40"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_measurement_trusts_is_not_what_the_user_trusts(script: str, tmp_path: Path) -> None:
    words = [sys.executable, f"perf/{script}.py", *SCRIPTS[script]]
    done = subprocess.run(
        words, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr and done.stdout, done.stderr
    assert not (tmp_path / ".config").exists()
