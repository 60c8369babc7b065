"""The headline table of OmniDocBench, computed from its evaluator's figures.

Protocol: docs/protocols/omnidocbench.md#aggregation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Column of the official table: element, metric, and where the notebook takes it from.
_COLUMNS = (
    ("text_block", "Edit_dist"),
    ("display_formula", "CDM"),
    ("table", "TEDS"),
    ("table", "TEDS_structure_only"),
    ("reading_order", "Edit_dist"),
    # Not in the official table, and no part of the overall; shown because its CDM needs tools that are often absent.
    ("display_formula", "Edit_dist"),
    ("table", "Edit_dist"),
)

#: Those that the official table has, overall apart.
OFFICIAL_COLUMNS = tuple(f"{element}_{metric}" for element, metric in _COLUMNS[:5])


def headline_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """One row of the official table, and two more edit distances: these as fractions, the others in percent.

    Rounded to 3 decimals; `overall` is computed from rounded values, and None without CDM (the official notebook would
    take it as 0).
    """
    row = {f"{element}_{metric}": _rounded(_value(result, element, metric)) for element, metric in _COLUMNS}
    text, cdm = row["text_block_Edit_dist"], row["display_formula_CDM"]
    teds = _zero_if_missing_like_official(row["table_TEDS"])
    # Made of numbers with three decimals; what is beyond the twelfth is noise.
    overall = None if text is None or cdm is None else round(((1 - text) * 100 + cdm + teds) / 3, 12)
    return {**row, "overall": overall}


def unrounded_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The same columns before rounding, without `overall`."""
    return {f"{element}_{metric}": _value(result, element, metric) for element, metric in _COLUMNS}


def summary_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The row of version 1.6, which rounds nothing; `overall` is None where any of its three parts is."""
    row = unrounded_row(result)
    text, cdm, teds = row["text_block_Edit_dist"], row["display_formula_CDM"], row["table_TEDS"]
    if text is None or cdm is None or teds is None:
        return {**row, "overall": None}
    return {**row, "overall": ((1 - text) * 100 + cdm + teds) / 3}


def official_value(result: Mapping[str, Mapping[str, Any]], element: str, metric: str) -> float | None:
    """A figure of the evaluator as a fraction; None where it has none, or no number."""
    figures = result.get(element, {})
    if metric == "Edit_dist":
        value = figures.get("all", {}).get(metric, {}).get("ALL_page_avg")
    else:
        # The mean over pages, not the mean over samples that stands under "all".
        value = figures.get("page", {}).get(metric, {}).get("ALL")
    return value if isinstance(value, float) and math.isfinite(value) else None


def _value(result: Mapping[str, Mapping[str, Any]], element: str, metric: str) -> float | None:
    value = official_value(result, element, metric)
    return value if value is None or metric == "Edit_dist" else value * 100


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(np.round(value, 3))


def _zero_if_missing_like_official(value: float | None) -> float:
    """Without any table, the notebook takes TEDS as 0 (#aggregation); the measure `overall` is then absent."""
    return 0.0 if value is None else value
