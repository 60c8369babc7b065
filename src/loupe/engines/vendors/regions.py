"""The areas of a page as a package found them, in the one form that embeddings and the report read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Coordinates run from 0 to this, whatever the size of the page.
WHOLE = 1000


def region(
    index: int, label: str, content: object, box: object, *, size: tuple[float, float], score: object = None
) -> dict[str, Any]:
    """One area: `bbox_2d` in thousandths of the page, out of a box in units of which the page has `size`.

    `score` is how sure the layout model was, from 0 to 1, where the package tells.
    """
    sure = {"score": round(float(score), 4)} if isinstance(score, int | float) and 0 <= score <= 1 else {}
    return {
        "index": index,
        "label": label,
        "content": content if isinstance(content, str) else "",
        "bbox_2d": thousandths(box, size),
        **sure,
    }


def thousandths(box: object, size: tuple[float, float]) -> list[int] | None:
    """Left, top, right, bottom in thousandths of width and height; None for what is no box."""
    if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != 4 or min(size) <= 0:
        return None
    try:
        return [int(float(side) * WHOLE / whole) for side, whole in zip(box, size * 2, strict=True)]
    except (TypeError, ValueError, OverflowError):
        return None
