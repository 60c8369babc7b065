"""OnnxTR 0.9: docTR's detection and recognition with onnxruntime. Loupe puts the lines in reading order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxtr.io import DocumentFile
from onnxtr.models import ocr_predictor


def load(options: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """`detection` and `recognition`: names of models."""
    predictor = ocr_predictor(det_arch=options["detection"], reco_arch=options["recognition"])

    def read(page: Any) -> dict[str, Any]:
        (found,) = predictor(DocumentFile.from_images(page.path)).pages
        height, width = found.dimensions
        lines = [line_of(line, width, height) for block in found.blocks for line in block.lines]
        return {"lines": lines, "size": [width, height]}

    return read


def line_of(line: Any, width: int, height: int) -> dict[str, Any]:
    """A line with its corners in pixels; an upright box is given by two of them."""
    corners = [[float(x) * width, float(y) * height] for x, y in line.geometry]
    if len(corners) == 2:
        (left, top), (right, bottom) = corners
        corners = [[left, top], [right, top], [right, bottom], [left, bottom]]
    scores = [float(word.confidence) for word in line.words]
    text = " ".join(word.value for word in line.words)
    return {"box": corners, "text": text, "score": sum(scores) / max(len(scores), 1)}
