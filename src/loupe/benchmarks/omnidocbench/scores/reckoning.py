"""How each version gets from samples to figures, side by side: which figures exist, and which pages count.

Protocol: docs/protocols/omnidocbench.md#aggregation; docs/protocols/omnidocbench_v16.md#aggregation.
How a page becomes samples stands in rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from loupe.benchmarks.omnidocbench.scores.aggregation import OFFICIAL_METRICS, ElementMetrics
from loupe.benchmarks.omnidocbench.scores.cdm_files import CdmInputs, no_fields, stripped_inputs
from loupe.benchmarks.omnidocbench.scores.cdm_preparation import cdm_inputs, official_fields
from loupe.benchmarks.omnidocbench.scores.headline import headline_row, summary_row

Row: TypeAlias = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """One version; `pages` is how many its data has."""

    name: str
    pages: int
    metrics: Mapping[str, ElementMetrics]
    #: The row of the official table, of all that the evaluator writes.
    headline: Callable[[Mapping[str, Mapping[str, Any]]], Row]
    #: Whether there is a `run_summary.json`.
    summary: bool
    #: Whether a page without a prediction is an empty answer, and not left out.
    missing_is_empty: bool
    #: Whether a page that has tables or formulas in the ground truth, but no sample of them, counts as 0; pages are
    #: then told apart by the whole names of their images.
    unsampled_is_zero: bool
    #: Whether the text is also measured with the marks that its rules hide (docs/protocols/mdpbench.md#hidden-marks).
    marks_beside: bool
    #: The engine of CDM, and what it gets of a formula's ground truth and prediction.
    cdm_profile: str
    cdm_inputs: Callable[[str, str], CdmInputs]
    #: What of it stands in the official sample.
    cdm_fields: Callable[[str, str], dict[str, str]]


RECKONING_1_5: Final = Reckoning(
    name="1.5",
    pages=1_355,
    metrics=OFFICIAL_METRICS,
    headline=headline_row,
    summary=False,
    missing_is_empty=False,
    unsampled_is_zero=False,
    marks_beside=False,
    cdm_profile="omnidocbench",
    cdm_inputs=stripped_inputs,
    cdm_fields=no_fields,
)

RECKONING_1_6: Final = Reckoning(
    name="1.6",
    pages=1_651,
    metrics={
        **OFFICIAL_METRICS,
        "display_formula": ElementMetrics(metric=("Edit_dist", "CDM")),
        "table": ElementMetrics(metric=("TEDS", "Edit_dist"), group_structure=True),
    },
    headline=summary_row,
    summary=True,
    missing_is_empty=True,
    unsampled_is_zero=True,
    marks_beside=True,
    cdm_profile="omnidocbench_v16",
    cdm_inputs=cdm_inputs,
    cdm_fields=official_fields,
)

RECKONINGS: Final = {each.name: each for each in (RECKONING_1_5, RECKONING_1_6)}
