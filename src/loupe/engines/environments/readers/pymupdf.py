"""PyMuPDF4LLM 2 (part of PyMuPDF 2): Markdown with headings and tables; pages without text by Tesseract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf4llm


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`options` are those of `to_markdown`."""
    return lambda page: str(pymupdf4llm.to_markdown(page.path, pages=[0], **options))
