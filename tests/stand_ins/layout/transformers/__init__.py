"""Stands in for transformers 5.23 where PP-DocLayoutV3 is called; the real classes take the same.

A model is a folder with `labels.json`. The colour of a page's first pixel says what happens to it and all of its
batch: red raises, green
ends the process, blue sleeps, yellow is too much for the memory, after magenta nothing works; any other page has a
title, a text, a table and a picture, in the order of `order_seq`.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image
from torch import Tensor

__version__ = "5.23.0"
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
YELLOW, MAGENTA = (255, 255, 0), (255, 0, 255)
#: Label, score, share of the page (left, top, right, bottom), place in reading order.
FOUND = (
    (22, 0.9, (0.1, 0.3, 0.9, 0.5), 1),
    (6, 0.8, (0.1, 0.1, 0.9, 0.2), 0),
    (14, 0.7, (0.1, 0.8, 0.9, 0.95), 3),
    (21, 0.6, (0.1, 0.55, 0.9, 0.75), 2),
    (12, 0.95, (0.1, 0.0, 0.9, 0.05), 4),
    (22, 0.25, (0.0, 0.0, 0.1, 0.1), 5),
)


def _folder(name: str, local_files_only: bool) -> Path:
    assert local_files_only and os.environ["HF_HUB_OFFLINE"] == "1"
    if not (Path(name) / "labels.json").is_file():
        raise OSError(f"We couldn't connect to the hub, and {name} is no folder with a model")
    return Path(name)


class OutOfMemoryError(RuntimeError):
    """Called as that of torch is."""


class PPDocLayoutV3ImageProcessor:
    @classmethod
    def from_pretrained(cls, name: str, *, local_files_only: bool) -> PPDocLayoutV3ImageProcessor:
        _folder(name, local_files_only)
        return cls()

    def __call__(self, images: list[Image.Image], return_tensors: str) -> dict[str, Tensor]:
        assert return_tensors == "pt" and all(image.mode == "RGB" for image in images)
        return {"pixel_values": Tensor(image.getpixel((0, 0)) for image in images)}

    def post_process_object_detection(
        self, outputs: Any, threshold: float, target_sizes: Tensor
    ) -> list[dict[str, Tensor]]:
        return [self._page(height, width, threshold) for height, width in target_sizes]

    def _page(self, height: int, width: int, threshold: float) -> dict[str, Tensor]:
        found = sorted((one for one in FOUND if one[1] >= threshold), key=lambda one: one[3])
        boxes = [
            [left * width, top * height, right * width, bottom * height]
            for _, _, (left, top, right, bottom), _ in found
        ]
        columns = {"labels": [one[0] for one in found], "scores": [one[1] for one in found], "boxes": boxes}
        return {key: Tensor(values) for key, values in {**columns, "order_seq": [one[3] for one in found]}.items()}


class PPDocLayoutV3ForObjectDetection:
    def __init__(self, labels: list[str]) -> None:
        self.config = SimpleNamespace(id2label=dict(enumerate(labels)), _commit_hash="0123abc")
        self.broken = False

    @classmethod
    def from_pretrained(cls, name: str, *, local_files_only: bool) -> PPDocLayoutV3ForObjectDetection:
        return cls(json.loads((_folder(name, local_files_only) / "labels.json").read_text()))

    def eval(self) -> PPDocLayoutV3ForObjectDetection:
        return self

    def to(self, device: str) -> PPDocLayoutV3ForObjectDetection:
        assert device == "cpu"
        return self

    def __call__(self, pixel_values: Tensor) -> SimpleNamespace:
        pages = list(pixel_values)
        if log := os.environ.get("OMP_LAYOUT_BATCHES"):
            with Path(log).open("a") as file:
                file.write(f"{len(pages)}\n")
            time.sleep(0.3)
        if RED in pages:
            raise RuntimeError("OpenCV(4.10.0) !ssize.empty() in function 'resize'")
        if GREEN in pages:
            os._exit(3)
        if BLUE in pages:
            time.sleep(60)
        if YELLOW in pages:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        self.broken |= MAGENTA in pages
        if self.broken:
            raise RuntimeError("no kernel image is available")
        return SimpleNamespace()
