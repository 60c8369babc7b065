"""Where engines saw the parts of a page, as the report draws it: plain numbers and short labels, bounded."""

from __future__ import annotations

from typing import Any, TypeAlias

from loupe.data.pages import page_size
from loupe.engines.adapters.areas import Areas, areas_of, box_within
from loupe.engines.pages.page_images import parse_rule
from loupe.errors import PageError
from loupe.explanation import Area
from loupe.report.markup import without_surrogates
from loupe.types import PageSource, PdfPage, Prediction

JsonObject: TypeAlias = dict[str, Any]

#: Areas of one answer that are drawn, and characters of one label.
AREA_LIMIT = 1_000
LABEL_LIMIT = 120


def packed_layout(prediction: Prediction, page: PageSource | None, image_rule: str) -> JsonObject | None:
    """The areas that an answer tells, boxes as fractions of its page; None where it tells none, or has no page.

    `image_rule` is how the page was sent ("": not known): some models answer in pixels of that image.
    """
    found = areas_of(prediction.text, prediction.response)
    if found is None or page is None:
        return None
    areas, unusable = _on_page(found, page, image_rule)
    return {
        "lines": found.lines,
        "areas": [_packed(area) for area in areas[:AREA_LIMIT]],
        "hidden": max(0, len(areas) - AREA_LIMIT),
        "unusable": unusable,
    }


def _packed(area: Area) -> list[Any]:
    label = " ".join(area.label[: 4 * LABEL_LIMIT].split())
    shown = label if len(label) <= LABEL_LIMIT else label[:LABEL_LIMIT] + "…"
    sure = None if area.confidence is None else round(area.confidence, 3)
    return [*(round(side, 4) for side in area.box), without_surrogates(shown), sure]


def _on_page(found: Areas, page: PageSource, image_rule: str) -> tuple[list[Area], int]:
    """The areas as fractions of the page, and how many have no place on it."""
    if not found.pixels:
        return list(found.areas), found.unusable
    size = _sent_size(page, image_rule)
    if size is None:
        return [], found.unusable + len(found.areas)
    width, height = size
    placed = [
        Area(box=box, label=area.label, confidence=area.confidence)
        for area in found.areas
        if (box := box_within([side / whole for side, whole in zip(area.box, (width, height) * 2, strict=True)], 1.0))
    ]
    return placed, found.unusable + len(found.areas) - len(placed)


def _sent_size(page: PageSource, image_rule: str) -> tuple[int, int] | None:
    """Width and height of the page as it was sent, by the rule of its profile.

    A page of a PDF has none of its own: where no rule is known, nor is its size.
    """
    if not image_rule and isinstance(page, PdfPage):
        return None
    try:
        return parse_rule(image_rule or "none").target(*page_size(page))
    except (PageError, ValueError, OSError):
        return None
