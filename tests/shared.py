"""The folder with oracles and real data beside the checkout; a user's clone has none, and its tests skip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2] / "shared"


def shared(relative: str) -> Path:
    """A path below the shared folder; skips the test module, naming the path, where it is missing."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"SKIPPED: {path} is not here, so nothing is checked against it", allow_module_level=True)
    return path


def cases(relative: str) -> list[dict[str, Any]]:
    """The cases of one oracle file, one JSON object per line."""
    return [json.loads(line) for line in shared(relative).read_text(encoding="utf-8").splitlines() if line.strip()]
