"""MinerU 4: `MinerUParser`, which is what `mineru-kit parse` calls for a local page; in a worker it keeps its models.

Source: `mineru/parser` of PyPI mineru 4.0.12 and the schema of docvortex 0.6.4; docs/protocols/engines.md#mineru.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from loupe.engines.vendors.mineru_pages import draw_page, file_and_page
from loupe.engines.vendors.regions import region
from loupe.errors import EngineError
from loupe.files.scratch import scratch_folder
from loupe.types import Output, Request

#: Blocks inside blocks inside spans; deeper is no page.
_DEEPEST = 20


class Tiers:
    """The parser of the package, with our settings. A server that nobody named is named as none, over its own files."""

    def __init__(self, *, tier: str, method: str, image_analysis: bool, server_url: str, model: str) -> None:
        # Text that stands in a PDF needs no model.
        self._wants_models = (tier, method) != ("flash", "txt")
        config = import_module("mineru.config")
        server = config.VlmConfig(server_url=server_url, model=model, api_key="")
        self._parser = import_module("mineru.parser").MinerUParser(
            tier=tier, parse_mode=method, image_analysis=image_analysis, vlm_config=server
        )

    def warm_up(self) -> None:
        """Have the package load its models, on a page of ours."""
        if not self._wants_models:
            return
        with scratch_folder("loupe-mineru-") as folder:
            self._parser.parse(draw_page(folder / "warm-up.png"))

    def read(self, request: Request) -> Output:
        """The page as the package has it: Markdown, and the blocks of its middle JSON."""
        path, page = file_and_page(request)
        result = self._parser.parse(path, page_range="" if page is None else str(page))
        files = _Files()
        result.save(files)
        pages = json.loads(files.texts["middle_json.json"]).get("pages", [])
        if len(pages) != 1:
            raise EngineError(f"mineru gave {len(pages)} pages for one")
        regions = [
            region(
                number,
                str(block.get("type", "")),
                _text(block),
                block.get("bbox"),
                size=(1, 1),
                score=block.get("score"),
            )
            for number, block in enumerate(pages[0].get("blocks", []))
        ]
        return Output(text=files.texts["markdown.md"], response={"regions": regions})


class _Files:
    """Where the package saves a result. Saved, its Markdown names pictures; else it holds them, megabytes of base64."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write_string(self, path: str, data: str) -> None:
        self.texts[path] = data

    def write(self, path: str, data: bytes) -> None:
        """A picture; nobody asks for it."""


def _text(node: Any, depth: int = 0) -> str:
    """The text below a block: its content is a text, or spans, or further blocks."""
    if isinstance(node, str):
        return node
    if depth > _DEEPEST:
        return ""
    if isinstance(node, Mapping):
        return _text(node.get("content", ""), depth + 1)
    if isinstance(node, list):
        blocks = any(isinstance(each, Mapping) and "bbox" in each for each in node)
        return ("\n" if blocks else "").join(_text(each, depth + 1) for each in node)
    return ""
