"""A stand-in for a vendor's package, and a page to ask it about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines_sdk.asking import StandIn, blank_page


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    folder = tmp_path / "stand-in"
    folder.mkdir()
    before = set(sys.modules)
    yield StandIn(folder, monkeypatch)
    # No stand-in may be imported here: packages run in workers alone.
    assert {"glmocr", "paddleocr", "mineru", "transformers", "vllm"}.isdisjoint(set(sys.modules) - before)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return blank_page(tmp_path / "page.png")
