"""Stands in for mineru 4's settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stand_in import note


@dataclass
class VlmConfig:
    """Which model server is asked, if any."""

    engine: str = "auto"
    server_url: str = ""
    api_key: str = ""
    model: str = ""
    http_timeout: int = 600
    max_concurrency: int = 100


note("config", file=Path(os.environ["MINERU_CONFIG"]).read_text(encoding="utf-8"))
