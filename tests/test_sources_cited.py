"""Documents that the code cites are in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Rooms whose citations still name papers of the project's planning.
WAITING = ("engines", "sizing", "inference", "data/rasters.py", "metrics/repetition.py")


@pytest.mark.parametrize("room", ["benchmarks", "data", "metrics", "runs", "pipeline", "report", "cli", "stats"])
def test_every_cited_document_is_here(room: str) -> None:
    source = ROOT / "src" / "loupe"
    for file in sorted((source / room).rglob("*.py")):
        if file.relative_to(source).as_posix().startswith(WAITING):
            continue
        text = file.read_text(encoding="utf-8")
        assert "protocols/" not in text, file
        for cited in re.findall(r"docs/[\w/.-]+\.md", text):
            assert (ROOT / cited).is_file(), f"{file}: {cited}"
