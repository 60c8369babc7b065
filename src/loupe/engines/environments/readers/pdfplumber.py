"""pdfplumber 0.11: the characters of a PDF page in lines. `layout = true` keeps columns apart by spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pdfplumber


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`options` are those of `extract_text`."""

    def read(page: Any) -> str:
        with pdfplumber.open(page.path) as document:
            return str(document.pages[0].extract_text(**options))

    return read
