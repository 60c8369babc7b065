"""Predicted formulas of several lines, joined again in every way.

Protocol: docs/protocols/omnidocbench_v16.md#partitions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.match.formulas.sides import in_order, joined
from loupe.benchmarks.omnidocbench.records import PredictedItem

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules

#: Of a formula with more lines, or where there are more ways than this, no way is tried.
_MOST_LINES: Final = 8
_MOST_WAYS: Final = 128

Way: TypeAlias = tuple[PredictedItem, ...]


def partitions(sources: Sequence[PredictedItem], rules: Rules) -> Iterator[list[PredictedItem]]:
    """All combinations of the ways to part the items, the first item slowest; none where nothing can be parted."""
    lines = [rules.split_items([source]) for source in in_order(sources)]
    counts = [2 ** (len(parts) - 1) if len(parts) <= _MOST_LINES else 1 for parts in lines]
    if not 1 < math.prod(counts) <= _MOST_WAYS:
        return
    ways = [
        list(_ways(parts, rules)) if count > 1 else [(source,)]
        for source, parts, count in zip(in_order(sources), lines, counts, strict=True)
    ]
    for combination in itertools.product(*ways):
        yield [source for way in combination for source in way]


def _ways(lines: Sequence[PredictedItem], rules: Rules) -> Iterator[Way]:
    """The lines in groups of neighbours, from all in one group to all apart; bit i of the mask cuts behind line i."""
    for mask in range(2 ** (len(lines) - 1)):
        cuts = [0, *(place for place in range(1, len(lines)) if mask >> (place - 1) & 1), len(lines)]
        yield tuple(_group(lines[start:stop], rules) for start, stop in itertools.pairwise(cuts))


def _group(lines: Sequence[PredictedItem], rules: Rules) -> PredictedItem:
    first, last = lines[0].item, lines[-1].item
    if len(lines) == 1:
        return lines[0]
    content = joined([line.item.content for line in lines], rules.bare_formula)
    if not content.startswith((r"\[", "$$")):
        content = rf"\[{content}\]"
    return PredictedItem(lines[0].index, replace(first, content=content, end=last.end, fine_category=FORMULA))
