"""pypdf 7: the text of a PDF page in the order of its content stream, or as laid out (`extraction_mode = "layout"`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypdf import PdfReader


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`options` are those of `extract_text`."""
    return lambda page: str(PdfReader(page.path).pages[0].extract_text(**options))
