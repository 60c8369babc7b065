"""Conclude a run: from all scored pages to the official figures, the headline, slices and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loupe.benchmarks.omnidocbench.aggregation import OFFICIAL_COLUMNS, metric_result, run_summary
from loupe.benchmarks.omnidocbench.figures import RECKONING_1_5, RECKONINGS, Reckoning, formula_warnings
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, beside_the_score, flag_warnings
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, from_details
from loupe.types import FAILED, Conclusion, Estimate, FailedAre, SampleScores

#: Pages of all versions, whose numbers are not comparable.
_PAGES_OF_VERSIONS = {981: "1.0"} | {each.pages: each.name for each in RECKONINGS.values()}
_COLUMNS = {
    "text_block_Edit_dist": "text",
    "display_formula_CDM": "CDM",
    "display_formula_Edit_dist": "formulas",
    "table_TEDS": "TEDS",
    "table_TEDS_structure_only": "TEDS-S",
    "table_Edit_dist": "tables",
    "reading_order_Edit_dist": "reading order",
}


def conclude(rows: Sequence[SampleScores], reckoning: Reckoning = RECKONING_1_5) -> Conclusion:
    """`figures`: `metric_result` and `headline` as upstream has them; where pages are missing, the headline with them.

    In 1.5, pages without a prediction are in none of the official figures; `headline_missing_as_empty` has them as
    empty ones. In 1.6 they are empty ones, and there is a `run_summary`.
    """
    pages, fixed = list[ScoredPage](), False
    for row in rows:  # in one pass: rows are read from the run's file each time
        fixed = fixed or any(score.measure == "text_edit_with_invented" for score in row.scores)
        if (page := from_details(row)) is not None:
            pages.append(page)
    answered = [page for page in pages if page.answered]
    result = metric_result(answered, reckoning.metrics)
    headline = reckoning.headline(result)
    figures: dict[str, Any] = {"metric_result": result, "headline": headline}
    if reckoning.summary:
        figures["run_summary"] = run_summary(answered, reckoning.metrics, result)
    warnings = _version_warning(len(rows), reckoning)
    if len(answered) < len(pages):
        whole = reckoning.headline(metric_result(pages, reckoning.metrics))
        figures["headline_missing_as_empty"] = whole
        missing = [page.stem for page in pages if not page.answered]
        warnings.append(_missing_warning(missing, len(pages), whole, headline))
    return Conclusion(
        figures=figures,
        official="" if fixed else _official_row(headline),
        not_computed=_not_computed(answered),
        slices=attribute_slices(result),
        failed_are=_failed_are(rows, answered),
        warnings=[
            *warnings,
            *formula_warnings(answered, reckoning.cdm_profile),
            *_with_marks(flag_warnings(answered), rows),
        ],
    )


def _failed_are(rows: Sequence[SampleScores], answered: Sequence[ScoredPage]) -> FailedAre:
    """Missing pages are left out; files that are no text, and pages whose scorer failed, are empty answers."""
    if len(answered) == len(rows):
        return "empty"
    failed = sum(row.outcome in FAILED for row in rows)
    return "left out" if failed == len(rows) - len(answered) else "partly left out"


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
        if column in whole and _shown(whole[column]) != _shown(official[column])
    ]
    named = missing[0] if len(missing) == 1 else f"{missing[0]}, …"
    return (
        f"missing-prediction: {len(missing):,} of {total:,} pages have none and are left out, as upstream does "
        f"({named}); counted as empty: {', '.join(changed) or 'the same'}"
    )


def _with_marks(lines: Sequence[str], rows: Sequence[SampleScores]) -> list[str]:
    return [line + beside_the_score(rows) if line.startswith(f"{HIDDEN_MARKS}:") else line for line in lines]


def _official_row(headline: Mapping[str, float | None]) -> str:
    """The row of the official table, in which every component is rounded before the overall is made of them."""
    values = {"overall": headline["overall"]} | {_COLUMNS[column]: headline[column] for column in OFFICIAL_COLUMNS}
    row = [f"{label} {_shown(value)}" for label, value in values.items() if value is not None]
    return f"official table figures: {' · '.join(row)}" if row else ""


def _not_computed(pages: Sequence[ScoredPage]) -> dict[str, str]:
    """Explain why there is no CDM and with it no overall; the measure of fixed mode is none of the others."""
    formulas = [sample for page in pages for sample in page.match.display_formula]
    failure = next((sample.cdm_failure for sample in formulas if sample.cdm is None and sample.cdm_failure), "")
    cdm = "CDM is switched off (-o cdm=off)" if formulas else "no displayed formulas on these pages"
    if any(sample.cdm is not None for sample in formulas) or any(map(_lacks_formulas, pages)):
        cdm = ""
    elif failure:
        cdm = failure
    tables = (
        ""
        if any(page.match.table or "table" in (page.annotated or ()) for page in pages)
        else "no tables on these pages"
    )
    lacking = [f"formula_cdm ({cdm})" if cdm else "", f"table_teds ({tables})" if tables else ""]
    overall = "needs " + " and ".join(filter(None, lacking))
    return {"text_edit_with_invented": "", "formula_cdm": cdm} | ({"overall": overall} if cdm or tables else {})


def _lacks_formulas(page: ScoredPage) -> bool:
    """True if it counts as 0 in CDM without a formula to compare (1.6)."""
    return page.cdm_computed and not page.match.display_formula and "display_formula" in (page.annotated or ())


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _version_warning(pages: int, reckoning: Reckoning) -> list[str]:
    version = _PAGES_OF_VERSIONS.get(pages)
    if version in (None, reckoning.name):
        return []
    return [f"the data has {pages:,} pages, as version {version} has: not comparable with {reckoning.name}"]


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
