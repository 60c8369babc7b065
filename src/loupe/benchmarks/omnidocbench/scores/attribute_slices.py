"""The official figures by attributes of blocks as slices: text by background, tables by frame, formulas by type.

The paper's attribute tables (arXiv 2412.07626): means over the blocks with an attribute, as `group` of the official
`P_metric_result.json` has them (docs/protocols/omnidocbench.md#aggregation). Slices by pages' attributes are averages
over pages instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from loupe.types import Estimate

#: Element of the official result → what its slices are called, and our measure of each official metric.
_ELEMENTS = {
    "text_block": ("text", {"Edit_dist": "text_edit"}),
    "display_formula": ("formula", {"CDM": "formula_cdm", "Edit_dist": "formula_edit"}),
    "table": ("table", {"TEDS": "table_teds", "TEDS_structure_only": "table_teds_struct", "Edit_dist": "table_edit"}),
}
#: An attribute with more values than this is a name, not a category.
_MOST_VALUES = 50

Slices = dict[str, dict[str, dict[str, Estimate]]]


def attribute_slices(result: Mapping[str, Mapping[str, Any]]) -> Slices:
    """Attribute → value → measure, as `text.background` → `white` → `text_edit`, with the number of blocks."""
    found: Slices = {}
    for element, (noun, measures) in _ELEMENTS.items():
        group = result.get(element, {}).get("group", {})
        for metric, measure in measures.items():
            for attribute, value, estimate in _estimates(group, metric):
                tag = f"{noun}.{attribute.removeprefix(f'{noun}_')}"
                found.setdefault(tag, {}).setdefault(value, {})[measure] = estimate
    return {tag: values for tag, values in sorted(found.items()) if len(values) <= _MOST_VALUES}


def _estimates(group: Mapping[str, Any], metric: str) -> Iterator[tuple[str, str, Estimate]]:
    counts = group.get("sample_count", {})
    for label, mean in group.get(metric, {}).items():
        attribute, _, value = label.partition(": ")
        if not math.isnan(mean):
            yield attribute, value, Estimate(value=mean, n=counts.get(label, 0))
