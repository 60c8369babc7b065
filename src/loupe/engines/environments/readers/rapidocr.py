"""RapidOCR 3 with models of any size; those that are not in its package are downloaded from ModelScope."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from rapidocr import LangDet, LangRec, ModelType, OCRVersion, RapidOCR


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`models` (PP-OCRv4, PP-OCRv5, PP-OCRv6), `size` (tiny, small, medium, mobile, server), `language` (ch)."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    cv2.setNumThreads(threads)
    shared = {"ocr_version": OCRVersion(options["models"]), "model_type": ModelType(options["size"])}
    language = options.get("language", "ch")
    parameters = {
        "Global.log_level": "error",
        "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        **{f"Det.{key}": value for key, value in shared.items()},
        **{f"Rec.{key}": value for key, value in shared.items()},
        "Det.lang_type": LangDet(language),
        "Rec.lang_type": LangRec(language),
    }
    engine = RapidOCR(params=parameters)
    line = np.full((48, 160, 3), 255, dtype=np.uint8)
    # It loads each model when it first needs it: now, so that a missing one is known before the first page.
    engine(line, use_det=True, use_cls=False, use_rec=False)
    engine(line, use_det=False, use_cls=True, use_rec=True)

    def read(page: Any) -> dict[str, Any]:
        image = cv2.imread(page.path)
        found = engine(image, use_det=True, use_cls=True, use_rec=True)  # it remembers what it was last told
        if found.boxes is None:
            return {"lines": []}
        lines = zip(found.boxes.tolist(), found.txts, found.scores, strict=True)
        placed = [{"box": box, "text": text, "score": float(score)} for box, text, score in lines]
        return {"lines": placed, "size": [image.shape[1], image.shape[0]]}

    return read
