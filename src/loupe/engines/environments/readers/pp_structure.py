"""PP-StructureV3 of PaddleOCR 3: layout, tables, formulas and text as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddleocr import PPStructureV3


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`options` are keyword arguments of PPStructureV3."""
    engine = PPStructureV3(use_doc_orientation_classify=False, use_doc_unwarping=False, **options)
    return lambda page: "\n\n".join(str(found.markdown["markdown_texts"]) for found in engine.predict(page.path))
