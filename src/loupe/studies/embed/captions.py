"""Which caption belongs to which figure of a page.

Rule: docs/embedding.md. The labels are given ("crop + surrounding figure_title / vision_footnote
text"), not the geometry: that is ours. Boxes are left, top, right, bottom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from loupe.studies.embed.inputs import Box, Region

ANCHORS = frozenset({"image", "chart"})
CAPTIONS = frozenset({"figure_title", "vision_footnote"})
_TITLE = "figure_title"
#: Of the narrower box, horizontally: above or below.
_OVERLAP = 0.3
#: Of the lower box, vertically: side by side.
_ROW_OVERLAP = 0.5


def captions(regions: Sequence[Region]) -> Mapping[int, str]:
    """Caption texts by position in `regions` of the figures there; "" for those without one.

    A title or footnote goes to its nearest figure. A single title of figures that stand side by side goes to all.
    """
    anchors = [place for place, region in enumerate(regions) if region.label in ANCHORS]
    texts = [place for place, region in enumerate(regions) if region.label in CAPTIONS]
    attached: dict[int, list[int]] = {anchor: [] for anchor in anchors}
    nearest = {text: _nearest(regions, text, anchors) for text in texts} if anchors else {}
    titles = Counter(anchor for text, anchor in nearest.items() if regions[text].label == _TITLE)
    for text, anchor in nearest.items():
        row = _row(regions, anchor, anchors)
        alone = regions[text].label == _TITLE and len(row) > 1 and sum(titles[one] for one in row) == 1
        for one in row if alone else [anchor]:
            attached[one].append(text)
    return {
        anchor: "\n".join(regions[text].text.strip() for text in found if regions[text].text.strip())
        for anchor, found in attached.items()
    }


def _nearest(regions: Sequence[Region], text: int, anchors: Sequence[int]) -> int:
    """The smallest vertical gap among figures above or below; else the nearest centre. Ties: the lower index."""
    box = regions[text].box
    stacked = [anchor for anchor in anchors if _overlap(box, regions[anchor].box, 0) >= _OVERLAP]
    if stacked:
        return min(stacked, key=lambda anchor: (_gap(box, regions[anchor].box), regions[anchor].index))
    return min(anchors, key=lambda anchor: (_distance(box, regions[anchor].box), regions[anchor].index))


def _row(regions: Sequence[Region], anchor: int, anchors: Sequence[int]) -> Sequence[int]:
    """The figures that stand side by side with one, itself among them."""
    return [one for one in anchors if _overlap(regions[anchor].box, regions[one].box, 1) >= _ROW_OVERLAP]


def _overlap(one: Box, other: Box, axis: int) -> float:
    """What two boxes share of an axis (0 across, 1 down), as a part of the smaller extent."""
    shared = min(one[axis + 2], other[axis + 2]) - max(one[axis], other[axis])
    return max(shared, 0.0) / min(one[axis + 2] - one[axis], other[axis + 2] - other[axis])


def _gap(one: Box, other: Box) -> float:
    return max(one[1] - other[3], other[1] - one[3], 0.0)


def _distance(one: Box, other: Box) -> float:
    across = (one[0] + one[2] - other[0] - other[2]) / 2
    down = (one[1] + one[3] - other[1] - other[3]) / 2
    return float((across**2 + down**2) ** 0.5)
