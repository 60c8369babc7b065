"""Stands in for glmocr's settings: where the file with its own ones is."""

from __future__ import annotations

from pathlib import Path


class GlmOcrConfig:
    """The settings."""

    @classmethod
    def default_path(cls) -> str:
        """The package's own file."""
        return str(Path(__file__).with_name("config.yaml"))
