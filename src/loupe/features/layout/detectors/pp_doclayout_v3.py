"""PP-DocLayoutV3 through `transformers`: the layout model of GLM-OCR's and PaddleOCR-VL's own pipelines.

Model: PaddlePaddle/PP-DocLayoutV3_safetensors; calls as in `layout_detector.py` of the GLM-OCR SDK @ cef4d0ea, written
against transformers 5.23. Nothing is downloaded unless that is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from loupe.data.extras import install_command, install_hint
from loupe.engines.shared.model_names import refuse_folder_instead
from loupe.errors import EngineUnavailableError, MissingToolError
from loupe.features.layout.detectors import DetectorOptions, LoadedDetector
from loupe.features.layout.filtering import LABELS, Detection

if TYPE_CHECKING:
    from PIL.Image import Image

MODEL = "PaddlePaddle/PP-DocLayoutV3_safetensors"
_PACKAGES = ("torch", "torchvision", "transformers", "cv2")
_INSTEAD = "-o detector=geometric needs no model (born-digital pages)"


def load(options: DetectorOptions) -> LoadedDetector:
    """Load model and image processor from this machine; from the hub only if `download` is set."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        hint = f"{install_command('layout')}; {_INSTEAD}"
        raise MissingToolError(f"PP-DocLayoutV3 needs {', '.join(missing)}", hint=hint)
    if not options.download:
        # Libraries below would otherwise ask the hub whether a file has changed.
        os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    if not hasattr(transformers, "PPDocLayoutV3ForObjectDetection"):
        old = f"transformers {transformers.__version__} has no PP-DocLayoutV3"
        raise MissingToolError(old, hint=install_hint("layout", "-U"))
    name = options.model or MODEL
    refuse_folder_instead(name)
    where: dict[str, Any] = {"local_files_only": not options.download}
    if options.revision:
        where["revision"] = options.revision
    try:
        processor = transformers.PPDocLayoutV3ImageProcessor.from_pretrained(name, **where)
        model = transformers.PPDocLayoutV3ForObjectDetection.from_pretrained(name, **where)
    except OSError as error:
        said = " ".join(str(error).split())[:200]
        raise MissingToolError(
            f"the layout model {name} is not on this machine ({said})",
            hint=f"hf download {name}, or -o detector_download=true; {_INSTEAD}",
        ) from None
    _check_labels(name, model.config.id2label)
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    model = model.eval().to(device)

    def detect(images: Sequence[Image]) -> list[list[Detection]]:
        inputs = {key: value.to(device) for key, value in processor(images=list(images), return_tensors="pt").items()}
        with torch.no_grad():
            outputs = model(**inputs)
        sizes = torch.tensor([image.size[::-1] for image in images], device=device)
        found = processor.post_process_object_detection(outputs, threshold=options.least_score, target_sizes=sizes)
        return [_detections(page) for page in found]

    facts = {"torch": str(torch.__version__), "transformers": str(transformers.__version__)}
    commit = getattr(model.config, "_commit_hash", None)
    return LoadedDetector(
        detect=detect, facts={**facts, "layout_model": f"{name}@{commit}" if commit else name, "layout_device": device}
    )


def _check_labels(name: str, labels: dict[int, str]) -> None:
    """The rules of pipelines go by class number: a model with other classes would be read wrongly without a word."""
    if [labels.get(number) for number in range(len(labels))] != list(LABELS):
        raise EngineUnavailableError(f"{name} does not have the 25 labels of PP-DocLayoutV3, in their order")


def _detections(found: dict[str, Any]) -> list[Detection]:
    """`order_seq` counts from 0 in the order in which areas are read."""
    columns = (found[key].tolist() for key in ("labels", "scores", "boxes", "order_seq"))
    return [
        Detection(class_id=int(label), score=float(score), box=(box[0], box[1], box[2], box[3]), order=int(order))
        for label, score, box, order in zip(*columns, strict=True)
    ]
