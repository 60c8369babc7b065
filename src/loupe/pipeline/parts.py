"""Pages that were read in parts: how many calls they took, and what of them was lost, for the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from loupe.quantities import percent
from loupe.runs.folder import RunFolder
from loupe.runs.places import Place
from loupe.types import FAILED


class Parts(NamedTuple):
    """Figures by name, and what a reader must know; nothing for engines that read whole pages."""

    figures: dict[str, float]
    warnings: tuple[str, ...] = ()


def parts_of(folder: RunFolder, places: Mapping[str, Place]) -> Parts:
    """What the answers of a layout pipeline say of their calls and regions (docs/engines/layout.md)."""
    pages = calls = layout_failed = 0
    seen: Counter[str] = Counter()
    for prediction in folder.read_predictions(places.values()):
        response = prediction.response or {}
        layout_failed += bool(response.get("layout_failed"))
        if prediction.outcome in FAILED:
            continue
        if not isinstance(response.get("calls"), int):
            # Every answer of a pipeline says so: another engine's need not be read to their end.
            break
        pages += 1
        calls += response["calls"]
        seen.update(_counts(response))
    figures = {"calls_per_page": calls / pages} if pages else {}
    figures |= {"failed_regions": float(seen["lost"])} if seen["lost"] else {}
    return Parts(figures, (*_losses(seen), *_remarks(seen, layout_failed)))


def _counts(response: Mapping[str, Any]) -> dict[str, int]:
    lost, loops = _count(response, "failed_regions"), _count(response, "repeated_regions")
    layout = response.get("layout")
    left_out = _count(layout, "left_out") if isinstance(layout, dict) else 0
    return {
        "lost": lost,
        "read": _count(response, "regions_read"),
        "pages with losses": bool(lost),
        "left out": left_out,
        "pages left out": bool(left_out),
        "loops": loops,
        "pages with loops": bool(loops),
        "questions": bool(response.get("question_not_asked")),
    }


def _losses(seen: Mapping[str, int]) -> list[str]:
    if not seen["lost"]:
        return []
    # Vendors' packages tell what was lost, and not always of how many.
    share = f" ({percent(seen['lost'] / (seen['lost'] + seen['read']))})" if seen["read"] else ""
    return [f"{seen['lost']:,} regions{share} on {seen['pages with losses']:,} pages were lost: their text is missing"]


def _remarks(seen: Mapping[str, int], layout_failed: int) -> list[str]:
    said = (
        (layout_failed, f"the layout of {layout_failed:,} pages failed: they count as failed"),
        (seen["left out"], f"{seen['left out']:,} regions on {seen['pages left out']:,} pages were left out: too many"),
        (seen["loops"], f"{seen['loops']:,} regions on {seen['pages with loops']:,} pages are loops"),
        (
            seen["questions"],
            f"{seen['questions']:,} samples are questions, which a layout pipeline cannot answer",
        ),
    )
    return [text for count, text in said if count]


def _count(response: Mapping[str, Any], key: str) -> int:
    found = response.get(key)
    return found if isinstance(found, int) else 0
