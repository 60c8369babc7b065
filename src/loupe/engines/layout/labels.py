"""The 25 labels of PP-DocLayoutV3, and what is done with a region of each (docs/engines/glm-ocr.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

#: Read with the prompt of the task; `skip` keeps the region without reading it, `abandon` drops it.
Task: TypeAlias = Literal["text", "table", "formula", "skip", "abandon"]

#: Label → task, in the order of the detector's class numbers.
TASKS: Mapping[str, Task] = {
    "abstract": "text",
    "algorithm": "text",
    "aside_text": "abandon",
    "chart": "skip",
    "content": "text",
    "display_formula": "formula",
    "doc_title": "text",
    "figure_title": "text",
    "footer": "abandon",
    "footer_image": "abandon",
    "footnote": "abandon",
    "formula_number": "text",
    "header": "abandon",
    "header_image": "abandon",
    "image": "skip",
    "inline_formula": "formula",
    "number": "abandon",
    "paragraph_title": "text",
    "reference": "abandon",
    "reference_content": "text",
    "seal": "text",
    "table": "table",
    "text": "text",
    "vertical_text": "text",
    "vision_footnote": "text",
}
#: Class number → label.
LABELS = tuple(TASKS)
#: Never removed because they lie inside another region.
PRESERVED = frozenset({"image", "seal", "chart"})
#: What a skipped region is called in the finished page; the others are called by their task.
IMAGE = "image"


def label_of(class_id: int) -> str:
    """The label of a class; the detector's own number where it has none."""
    return LABELS[class_id] if 0 <= class_id < len(LABELS) else f"class_{class_id}"


def category_of(label: str) -> str:
    """What a region is in the finished page: `text`, `table`, `formula` or `image`; a dropped label is itself."""
    task = TASKS.get(label, "abandon")
    return IMAGE if task == "skip" else label if task == "abandon" else task
