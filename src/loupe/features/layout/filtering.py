"""From what a layout detector found on a page to the regions that are read, in reading order (docs/engines/glm-ocr.md).

Labels are the 25 of PP-DocLayoutV3, with what is done with a region of each. The arithmetic follows the SDK step by
step, because coordinates are cut off to whole numbers at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
    """Say what a region is in the finished page: `text`, `table`, `formula` or `image`; a dropped label is itself."""
    task = TASKS.get(label, "abandon")
    return IMAGE if task == "skip" else label if task == "abandon" else task


SCORE = 0.3
_SAME_CLASS, _OTHER_CLASS = 0.6, 0.98
_CONTAINED = 0.8
#: An image over more of the page than this is the page itself (wide pages, others).
_WHOLE_WIDE, _WHOLE_OTHER = 0.82, 0.93
#: The one class whose containers go, instead of what it contains (in GLM-OCR's pipeline).
_SMALL = "reference"
#: Whose settings say which boxes go because they lie inside others.
Nesting: TypeAlias = Literal["glm", "paddle"]
#: Labels that take what lies inside them: all others in GLM-OCR's pipeline, these five in that of PaddleOCR-VL 1.5.
_TAKING: Mapping[Nesting, Collection[str]] = {
    "glm": frozenset(LABELS) - {_SMALL},
    "paddle": frozenset({"chart", "display_formula", "doc_title", "inline_formula", "paragraph_title"}),
}
#: Boxes of regions are thousandths of the page.
_SCALE = 1000

Box = tuple[float, float, float, float]
WholeBox = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The result of the detector: class number, score, left, top, right, bottom in pixels, place in reading order.

    A detector without a notion of how sure it is gives no `score`.
    """

    class_id: int
    box: Box
    score: float | None = None
    order: int = 0

    @property
    def rank(self) -> float:
        """The score for thresholds and for which of two doubles stays; 1 without one."""
        return 1.0 if self.score is None else self.score


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A detection that was kept, within the page and in whole pixels. No `order`: the detector gave none."""

    label: str
    score: float | None
    box: WholeBox
    order: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region to read (or, with task `skip`, to keep): its box in thousandths of the page."""

    index: int
    label: str
    task: Task
    box: WholeBox
    score: float | None = None


def keep_areas(
    detections: Sequence[Detection], width: int, height: int, *, least_score: float = SCORE, nesting: Nesting = "glm"
) -> list[Area]:
    """The areas of a page of `width` x `height` pixels: no doubles, nothing inside something else, in reading order."""
    kept = _without_doubles([one for one in detections if one.rank >= least_score])
    kept = _without_page_images(kept, width, height)
    kept = _without_contained(kept, nesting)
    kept.sort(key=lambda one: one.order)
    areas = (_area(one, width, height) for one in kept)
    return [area for area in areas if area is not None]


def regions(areas: Sequence[Area], width: int, height: int) -> list[Region]:
    """The areas that are read or kept, numbered from 0."""
    kept = [area for area in areas if TASKS.get(area.label, "abandon") != "abandon"]
    return [
        Region(
            index=index,
            label=area.label,
            task=TASKS[area.label],
            box=_thousandths(area.box, width, height),
            score=area.score,
        )
        for index, area in enumerate(kept)
    ]


def crop_box(box: WholeBox, width: int, height: int) -> WholeBox:
    """The pixels of a region on the original page; up to a thousandth of a side is lost, as in the SDK."""
    left, top, right, bottom = box
    return (
        int(left * width / _SCALE),
        int(top * height / _SCALE),
        int(right * width / _SCALE),
        int(bottom * height / _SCALE),
    )


def _thousandths(box: WholeBox, width: int, height: int) -> WholeBox:
    left, top, right, bottom = box
    return (
        int(left / width * _SCALE),
        int(top / height * _SCALE),
        int(right / width * _SCALE),
        int(bottom / height * _SCALE),
    )


def _without_doubles(detections: Sequence[Detection]) -> list[Detection]:
    """Best first; a box that covers nearly the same as a better one goes, of another class only if it is the same."""
    kept: list[Detection] = []
    for one in sorted(detections, key=lambda one: one.rank, reverse=True):
        if all(
            _overlap(better.box, one.box) < (_SAME_CLASS if better.class_id == one.class_id else _OTHER_CLASS)
            for better in kept
        ):
            kept.append(one)
    return kept


def _overlap(one: Box, other: Box) -> float:
    """Intersection over union, counting pixels at both edges."""
    left, top, right, bottom = (
        max(one[0], other[0]),
        max(one[1], other[1]),
        min(one[2], other[2]),
        min(one[3], other[3]),
    )
    common = max(0, right - left + 1) * max(0, bottom - top + 1)
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    union = areas[0] + areas[1] - common
    return common / union if union else 0.0


def _without_page_images(detections: list[Detection], width: int, height: int) -> list[Detection]:
    """Without images that are the page itself, if anything else is there."""
    if len(detections) < 2:
        return detections
    most = (_WHOLE_WIDE if width > height else _WHOLE_OTHER) * (width * height)
    return [
        one for one in detections if label_of(one.class_id) != IMAGE or _size_on_page(one.box, width, height) <= most
    ] or detections


def _size_on_page(box: Box, width: int, height: int) -> float:
    left, top, right, bottom = box
    return (min(width, right) - max(0, left)) * (min(height, bottom) - max(0, top))


def _without_contained(detections: list[Detection], nesting: Nesting) -> list[Detection]:
    """Without boxes inside others; of a list of references and its entries the list goes.

    All is decided on the same boxes: one that goes still takes others with it.
    """
    labels = [label_of(one.class_id) for one in detections]
    inside = [
        [other for other, box in enumerate(detections) if other != number and _is_inside(one.box, box.box)]
        if labels[number] not in PRESERVED
        else []
        for number, one in enumerate(detections)
    ]
    small = {_SMALL} if nesting == "glm" else set()
    holders = {other for number, others in enumerate(inside) if labels[number] in small for other in others}
    return [
        one
        for number, one in enumerate(detections)
        if not any(labels[other] in _TAKING[nesting] for other in inside[number])
        and (number not in holders or (labels[number] in small and inside[number]))
    ]


def _is_inside(box: Box, other: Box) -> bool:
    width = max(0, min(box[2], other[2]) - max(box[0], other[0]))
    height = max(0, min(box[3], other[3]) - max(box[1], other[1]))
    size = (box[2] - box[0]) * (box[3] - box[1])
    return (width * height / size if size > 0 else 0) >= _CONTAINED


def _area(one: Detection, width: int, height: int) -> Area | None:
    """Within the page, in whole pixels; None if nothing of it is on the page."""
    left, top, right, bottom = _from_centre(one.box)
    left, right = max(0, min(left, width)), max(0, min(right, width))
    top, bottom = max(0, min(top, height)), max(0, min(bottom, height))
    if left >= right or top >= bottom:
        return None
    return Area(
        label=label_of(one.class_id),
        score=one.score,
        box=(int(left), int(top), int(right), int(bottom)),
        order=one.order if one.order > 0 else None,
    )


def _from_centre(box: Box) -> Box:
    """The box enlarged by 1.0, as the SDK does by default: its edges move by what floating point loses."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    across, down = left + width / 2, top + height / 2
    return across - width / 2, down - height / 2, across + width / 2, down + height / 2
