"""MinerU 4, tier flash: the text of a PDF page without any model. Other tiers are for the kind `mineru`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mineru.config import VlmConfig
from mineru.parser import MinerUParser


class Files:
    """Where the package saves a result: only its Markdown is kept."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write_string(self, path: str, data: str) -> None:
        """A text of the result, by its name."""
        self.texts[path] = data

    def write(self, path: str, data: bytes) -> None:
        """A picture; nobody asks for it."""


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`tier` and `method`; no server, whatever a file of MinerU's own names: it could send documents to mineru.net."""
    parser = MinerUParser(
        tier=options.get("tier", "flash"),
        parse_mode=options.get("method", "txt"),
        vlm_config=VlmConfig(server_url="", model="", api_key=""),
    )

    def read(page: Any) -> str:
        files = Files()
        parser.parse(page.path).save(files)
        return files.texts["markdown.md"]

    return read
