"""docTR 1.1, and OnnxTR 0.9 with the same interface on onnxruntime. Loupe puts the lines in reading order."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

#: The one of the two that this environment has.
PACKAGE = "doctr" if find_spec("doctr") else "onnxtr"
DocumentFile = import_module(f"{PACKAGE}.io").DocumentFile
models = import_module(f"{PACKAGE}.models")


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`detection` and `recognition`: names of models."""
    wanted = {"det_arch": options["detection"], "reco_arch": options["recognition"]}
    predictor = _with_torch(wanted) if PACKAGE == "doctr" else models.ocr_predictor(**wanted)

    def read(page: Any) -> dict[str, Any]:
        (found,) = predictor(DocumentFile.from_images(page.path)).pages
        height, width = found.dimensions
        lines = [line_of(line, width, height) for block in found.blocks for line in block.lines]
        return {"lines": lines, "size": [width, height]}

    return read


def _with_torch(wanted: dict[str, Any]) -> Any:
    import torch

    predictor = models.ocr_predictor(**wanted, pretrained=True)
    return predictor.cuda() if torch.cuda.is_available() else predictor


def line_of(line: Any, width: int, height: int) -> dict[str, Any]:
    """A line with its corners in pixels; an upright box is given by two of them."""
    corners = [[float(x) * width, float(y) * height] for x, y in line.geometry]
    if len(corners) == 2:
        (left, top), (right, bottom) = corners
        corners = [[left, top], [right, top], [right, bottom], [left, bottom]]
    scores = [float(word.confidence) for word in line.words]
    text = " ".join(word.value for word in line.words)
    return {"box": corners, "text": text, "score": sum(scores) / max(len(scores), 1)}
