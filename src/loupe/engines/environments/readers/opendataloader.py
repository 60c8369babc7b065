"""OpenDataLoader PDF 2: Markdown of a whole PDF, by a Java program that starts once for each document."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opendataloader_pdf import convert

MARK = "loupe-page-%page-number%"


def load(options: dict[str, Any]) -> Callable[[Any], list[str]]:
    """`options` are those of `convert`."""

    def read(page: Any) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            separator = f"\n\n{MARK}\n\n"
            convert(
                input_path=[page.path], output_dir=folder, format="markdown", quiet=True, image_output="off",
                markdown_page_separator=separator, **options,
            )  # fmt: skip
            (found,) = Path(folder).rglob("*.md")
            return pages_of(found.read_text(encoding="utf-8"), page.pages)

    return read


def pages_of(text: str, count: int) -> list[str]:
    """The text below each page's mark."""
    parts = [""] * count
    before, _, mark = MARK.partition("%page-number%")
    del mark
    for part in text.split(before)[1:]:
        number, _, rest = part.partition("\n")
        parts[int(number) - 1] = rest.strip("\n")
    return parts
