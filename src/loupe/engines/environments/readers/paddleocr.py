"""PaddleOCR 3: text detection and recognition with PaddlePaddle. Loupe puts the lines in reading order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
from paddleocr import PaddleOCR


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`language` and version of the `models`."""
    engine = PaddleOCR(
        lang=options["language"],
        ocr_version=options["models"],
        use_doc_orientation_classify=False,
        use_doc_unwarping=False,
        use_textline_orientation=False,
    )

    def read(page: Any) -> dict[str, Any]:
        height, width = cv2.imread(page.path).shape[:2]
        lines = [line for found in engine.predict(page.path) for line in lines_of(found)]
        return {"lines": lines, "size": [width, height]}

    return read


def lines_of(found: Any) -> list[dict[str, Any]]:
    """The lines of one result."""
    named = zip(found["rec_polys"], found["rec_texts"], found["rec_scores"], strict=True)
    return [{"box": box, "text": text, "score": float(score)} for box, text, score in named]
