"""Tests of layout: the block at a place must be of a kind (docs/protocols/omni_parse_bench.md#layout_kind)."""

from __future__ import annotations

from collections.abc import Sequence

from loupe.benchmarks.omni_parse_bench.outcomes import PASSED, Outcome, failed
from loupe.benchmarks.omni_parse_bench.page import Block
from loupe.benchmarks.omni_parse_bench.records import Box, LayoutRule

_LEAST_COVER = 0.5
_RUNNING_TEXT = frozenset(("text", "list", "form"))


def check_layout(blocks: Sequence[Block], rule: LayoutRule) -> Outcome:
    """Pass if the smallest block that covers half of the place is labelled so; its text is not compared."""
    block = block_at(rule.place, blocks)
    if block is None:
        return failed("no_block", blocks=len(blocks))
    right = block.label in _RUNNING_TEXT if rule.kind == "text" else block.label == rule.kind
    return PASSED if right else failed("other_label", label=block.label, nearest=block.text)


def block_at(place: Sequence[Box], blocks: Sequence[Block]) -> Block | None:
    """The smallest block, the first of equals, over half of the area of the place's boxes."""
    total = sum(map(_area, place))
    best, smallest = None, 0.0
    for block in blocks:
        covered = sum(_area(_common(box, block.box)) for box in place) / total
        if covered >= _LEAST_COVER and (best is None or _area(block.box) < smallest):
            best, smallest = block, _area(block.box)
    return best


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _common(one: Box, other: Box) -> Box:
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])
