"""`P_run_summary.json`, which version 1.6 writes about a run: how many pages count, and the headline.

Protocol: docs/protocols/omnidocbench_v16.md#aggregation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidocbench.scores.aggregation import ElementMetrics, page_key, sample_metrics
from loupe.benchmarks.omnidocbench.scores.headline import official_value, summary_row
from loupe.benchmarks.omnidocbench.scores.scored_pages import PageSample, ScoredPage, samples_by_element

#: The columns of the official table.
_COLUMNS = (
    ("text_block", "Edit_dist"),
    ("display_formula", "CDM"),
    ("table", "TEDS"),
    ("table", "TEDS_structure_only"),
    ("reading_order", "Edit_dist"),
)


def run_summary(
    pages: Sequence[ScoredPage], metrics: Mapping[str, ElementMetrics], result: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """`page_denominators` and `notebook_metric_summary`; a figure that there is not is None."""
    samples = samples_by_element(pages)
    denominators: dict[str, dict[str, dict[str, int]]] = {
        element: {
            metric: {"ALL": _pages_that_count(element, metric, pages, samples[element], wanted)}
            for metric in _metrics(wanted)
        }
        for element, wanted in metrics.items()
    }
    row = summary_row(result)
    return {
        "page_denominators": denominators,
        "notebook_metric_summary": {
            "metrics": {
                f"{element}_{metric}": {
                    "raw": official_value(result, element, metric),
                    "page_denominator": denominators.get(element, {}).get(metric, {}).get("ALL"),
                    "notebook_value": row[f"{element}_{metric}"],
                }
                for element, metric in _COLUMNS
            },
            "overall_notebook": row["overall"],
        },
    }


def _metrics(wanted: ElementMetrics) -> list[str]:
    return [*wanted.metric, *(["TEDS_structure_only"] if "TEDS" in wanted.metric else [])]


def _pages_that_count(
    element: str, metric: str, pages: Sequence[ScoredPage], samples: Sequence[PageSample], wanted: ElementMetrics
) -> int:
    """Pages with such an element in the ground truth; where that is not counted, those with a value."""
    if annotated := sum(element in (page.annotated or ()) for page in pages):
        return annotated
    return len({page_key(each.page.image) for each in samples if metric in sample_metrics(each, wanted)})
