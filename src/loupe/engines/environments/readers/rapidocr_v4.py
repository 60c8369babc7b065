"""rapidocr-onnxruntime 1.4: PP-OCRv4 mobile models, which are in the package. Loupe puts the lines in reading order."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import cv2
from rapidocr_onnxruntime import RapidOCR


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`options` are keyword arguments of RapidOCR."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    cv2.setNumThreads(threads)
    engine = RapidOCR(intra_op_num_threads=threads, inter_op_num_threads=1, **options)

    def read(page: Any) -> dict[str, Any]:
        image = cv2.imread(page.path)
        found, _ = engine(image)
        lines = [{"box": box, "text": text, "score": float(score)} for box, text, score in found or []]
        return {"lines": lines, "size": [image.shape[1], image.shape[0]]}

    return read
