"""Unstructured 0.27: elements of a page as text, tables as HTML where its strategy finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstructured.partition.auto import partition


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`options` are those of `partition`: `strategy` (`fast` reads PDF text only, `hi_res` needs models)."""
    import unstructured.partition.pdf  # noqa: F401  it takes seconds, which are none of the first page

    def read(page: Any) -> str:
        elements = partition(filename=page.path, **options)
        return "\n\n".join(part for part in map(text_of, elements) if part)

    return read


def text_of(element: Any) -> str:
    """An element's text; of a table its HTML, if it has one."""
    table = getattr(element.metadata, "text_as_html", None) if element.category == "Table" else None
    return str(table or element.text or "")
