"""Xberg 1 (Kreuzberg's successor): Markdown of a PDF page; images by the Tesseract library in it.

It could fetch addresses; it is only given files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xberg import ExtractInput, ExtractionConfig, OcrConfig, extract


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`language`: of Tesseract, such as `eng`."""
    ocr = OcrConfig(backend="tesseract", language=[options["language"]])
    config = ExtractionConfig(output_format="markdown", ocr=ocr, use_cache=False)

    async def convert(path: str) -> str:
        found = await extract(ExtractInput(kind="uri", uri=Path(path).as_uri()), config)
        return str(found.results[0].content)

    return lambda page: asyncio.run(convert(page.path))
