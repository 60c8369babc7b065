"""Surya 0.22: the HTML of a page's blocks. Its model runs on a server of the user's; it starts none."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`server`: address of a server with surya's model, such as http://127.0.0.1:8000/v1."""
    if not options["server"]:
        raise ValueError("no server with surya's model is named")
    os.environ |= {"SURYA_INFERENCE_URL": options["server"], "SURYA_INFERENCE_AUTOSTART": "false"}
    from PIL import Image
    from surya.inference import SuryaInferenceManager
    from surya.recognition import RecognitionPredictor

    predictor = RecognitionPredictor(SuryaInferenceManager(lazy=False))

    def read(page: Any) -> str:
        with Image.open(page.path) as image:
            (found,) = predictor([image.convert("RGB")])
        return "\n".join(str(block.html) for block in found.blocks)

    return read
