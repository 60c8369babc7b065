"""Pages that were read in parts: how many calls they took, and what of them was lost, for the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loupe.runs.folder import Place, RunFolder
from loupe.types import FAILED


class Parts(NamedTuple):
    """Figures by name, and what a reader must know; nothing for engines that read whole pages."""

    figures: dict[str, float]
    warnings: tuple[str, ...] = ()


def parts_of(folder: RunFolder, places: Mapping[str, Place]) -> Parts:
    """What the answers of a layout pipeline say of their calls and regions (docs/engines/layout.md)."""
    pages = calls = lost = pages_with_losses = layout_failed = questions = 0
    for prediction in folder.read_predictions(place for place in places.values() if place.mark not in FAILED):
        response = prediction.response or {}
        if not isinstance(response.get("calls"), int):
            # Every answer of a pipeline says so: another engine's need not be read to their end.
            break
        pages += 1
        calls += response["calls"]
        lost += _count(response, "failed_regions")
        pages_with_losses += bool(_count(response, "failed_regions"))
        layout_failed += bool(response.get("layout_failed"))
        questions += bool(response.get("question_not_asked"))
    if not pages:
        return Parts({})
    said = (
        (lost, f"{lost:,} regions on {pages_with_losses:,} pages were lost: their text is missing"),
        (layout_failed, f"the layout of {layout_failed:,} pages failed: they have no regions, and no text"),
        (questions, f"{questions:,} samples ask something: a layout pipeline reads pages and answers no questions"),
    )
    figures = {"calls_per_page": calls / pages} | ({"failed_regions": float(lost)} if lost else {})
    return Parts(figures, tuple(text for count, text in said if count))


def _count(response: Mapping[str, Any], key: str) -> int:
    found = response.get(key)
    return found if isinstance(found, int) else 0
