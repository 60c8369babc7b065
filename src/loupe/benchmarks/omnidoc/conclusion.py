"""What is said of all pages together: the official figures, the headline, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidoc.aggregation import metric_result
from loupe.benchmarks.omnidoc.flag_warnings import NAMED, flag_warnings
from loupe.benchmarks.omnidoc.formula_cdm import formula_warnings
from loupe.benchmarks.omnidoc.headline import headline_row
from loupe.benchmarks.omnidoc.scored_pages import from_details
from loupe.types import Conclusion, SampleScores

#: Pages of the other versions, whose numbers are not comparable.
_OTHER_VERSIONS = {981: "1.0", 1651: "1.6"}
_COLUMNS = {
    "text_block_Edit_dist": "text",
    "display_formula_CDM": "CDM",
    "display_formula_Edit_dist": "formulas",
    "table_TEDS": "TEDS",
    "table_TEDS_structure_only": "TEDS-S",
    "table_Edit_dist": "tables",
    "reading_order_Edit_dist": "reading order",
}


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures`: `metric_result` and `headline` as upstream has them; where pages are missing, the headline with them.

    Pages without a prediction are in none of the official figures; `headline_missing_as_empty` has them as empty ones.
    """
    pages = [page for row in rows if (page := from_details(row)) is not None]
    answered = [page for page in pages if page.answered]
    result = metric_result(answered)
    headline = headline_row(result)
    figures: dict[str, Any] = {"metric_result": result, "headline": headline}
    warnings = _version_warning(len(rows))
    if len(answered) < len(pages):
        whole = headline_row(metric_result(pages))
        figures["headline_missing_as_empty"] = whole
        missing = [page.stem for page in pages if not page.answered]
        warnings.append(_missing_warning(missing, len(pages), whole, headline))
    return Conclusion(
        figures=figures,
        failed_are="left out" if len(answered) < len(rows) else "empty",
        warnings=[*warnings, *formula_warnings(answered), *flag_warnings(answered)],
    )


def _missing_warning(
    missing: Sequence[str],
    total: int,
    whole: Mapping[str, float | None],
    official: Mapping[str, float | None],
) -> str:
    """The numbers as they would be if a missing page were an empty answer, beside the official ones."""
    changed = [
        f"{label} {_shown(whole[column])} (official {_shown(official[column])})"
        for column, label in _COLUMNS.items()
        if column in whole
    ]
    more = ", …" if len(missing) > NAMED else ""
    return (
        f"missing-prediction: {len(missing):,} of {total:,} pages have none and are left out, as upstream does "
        f"({', '.join(missing[:NAMED])}{more}); counted as empty: {', '.join(changed)}"
    )


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _version_warning(pages: int) -> list[str]:
    version = _OTHER_VERSIONS.get(pages)
    return [f"the data has {pages:,} pages, as version {version} has: not comparable with 1.5"] if version else []
