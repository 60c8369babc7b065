"""EasyOCR 1.7: CRAFT detection, CRNN recognition. Loupe puts the lines in reading order.

It downloads by a switch of its own, which is on only where Loupe's worker may reach the network.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import cv2
import torch
from easyocr import Reader


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`languages`: such as `["en", "de"]`."""
    reader = Reader(
        options["languages"],
        gpu=torch.cuda.is_available(),
        download_enabled=not hasattr(socket, "loupe_closed"),
        verbose=False,
    )

    def read(page: Any) -> dict[str, Any]:
        image = cv2.imread(page.path)
        lines = [{"box": box, "text": text, "score": float(score)} for box, text, score in reader.readtext(image)]
        return {"lines": lines, "size": [image.shape[1], image.shape[0]]}

    return read
