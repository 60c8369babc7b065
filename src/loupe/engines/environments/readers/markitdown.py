"""MarkItDown 0.1: the text of a PDF page (pdfminer, pdfplumber's tables) as Markdown. It returns "" for an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markitdown import MarkItDown


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """No plugins: any installed package could be one."""
    del options
    converter = MarkItDown(enable_plugins=False)
    return lambda page: str(converter.convert_local(page.path).text_content)
