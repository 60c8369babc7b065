"""Kreuzberg 4: Markdown of a PDF page; images by the Tesseract in it, with the system's language data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kreuzberg import ExtractionConfig, OcrConfig, extract_file_sync


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`language`: of Tesseract, such as `eng`."""
    ocr = OcrConfig(backend="tesseract", language=options.get("language", "eng"))
    config = ExtractionConfig(output_format="markdown", ocr=ocr, use_cache=False)
    return lambda page: str(extract_file_sync(page.path, config=config).content)
