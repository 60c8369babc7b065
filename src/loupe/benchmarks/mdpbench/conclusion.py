"""What is said of all images together: the official table, its variants, and what a reader must know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loupe.benchmarks.mdpbench.final_score import SPLIT_COLUMNS, FinalScore, final_score, table_row
from loupe.benchmarks.mdpbench.official_files import RECKONING, metric_result
from loupe.benchmarks.mdpbench.page_ids import prefix_of, printed_language
from loupe.benchmarks.mdpbench.scored_images import from_details, image_attributes, samples_of_run
from loupe.benchmarks.omnidocbench.conclusion import attribute_slices
from loupe.benchmarks.omnidocbench.figures import formula_warnings
from loupe.benchmarks.omnidocbench.page_flags import FLAGS as OF_OMNIDOCBENCH
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, Flag, beside_the_score, flag_warnings
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage
from loupe.types import FAILED, Conclusion, FailedAre, SampleScores

_SUFFIX_RULE: Final = "suffix-rule"
FLAGS: Final = (
    Flag(_SUFFIX_RULE, "text samples filed under a page that does not exist, and so in no final score"),
    Flag("joined-formula-page", "formulas joined on one prediction, each of which counts as a page of its own"),
    *OF_OMNIDOCBENCH,
)
_SHOWN: Final = ("All", "Digit.", "Photo.", "Latin", "Non-Latin")


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures`: `metric_result` and `headline` as upstream has them, and the headline in other ways to count.

    Images without an answer are in none of the official figures; `headline_missing_as_empty` has them as empty ones.
    """
    images = [pages for row in rows if (pages := from_details(row))]
    every = [page for pages in images for page in pages]
    answered = [page for page in every if page.answered]
    score = final_score(samples_of_run(answered))
    without_rule = final_score(samples_of_run(answered), suffix_rule=False)
    result = metric_result(answered, image_attributes(images))
    lacking = _cdm_missing(answered)
    figures: dict[str, Any] = {
        "metric_result": result,
        _named("headline", lacking): table_row(score),
        _named("headline_without_suffix_rule", lacking): table_row(without_rule),
        "pages": dict(score.pages),
        "pages_by_language": _pages_by_language(answered),
    }
    warnings = []
    missing = [pages[0].page_id for pages in images if not pages[0].answered]
    if missing:
        whole = final_score(samples_of_run(every))
        figures[_named("headline_missing_as_empty", lacking)] = table_row(whole)
        warnings.append(_missing_warning(missing, len(images), whole, score))
    return Conclusion(
        figures=figures,
        official="" if lacking else _official_row(score),
        not_computed=_not_computed(answered, lacking),
        slices=attribute_slices(result),
        failed_are=_failed_are(rows, len(images) - len(missing)),
        warnings=[
            *warnings,
            *formula_warnings(answered, RECKONING.cdm_profile),
            *_with_effects(flag_warnings(answered, FLAGS), rows, score, without_rule),
        ],
    )


def _named(name: str, lacking: str) -> str:
    """A table without the formulas is not the official one, and is never called so."""
    return f"{name}_without_formulas" if lacking else name


def _cdm_missing(pages: Sequence[ScoredPage]) -> str:
    """Why there are formulas without CDM, "" where there are none."""
    failures = [
        sample.cdm_failure or "CDM is switched off (-o cdm=off)"
        for page in pages
        for sample in page.match.display_formula
        if sample.cdm is None
    ]
    return failures[0] if failures else ""


def _not_computed(pages: Sequence[ScoredPage], lacking: str) -> dict[str, str]:
    formulas = any(page.match.display_formula for page in pages)
    cdm = lacking or ("" if formulas else "no displayed formulas on these pages")
    of_overall = ("overall", "overall_digital", "overall_photographed", "photo_loss", "latin", "non_latin")
    needs = dict.fromkeys((*of_overall, "overall_without_suffix_rule"), f"needs formula_cdm ({lacking})")
    tables = "" if any(page.match.table for page in pages) else "no tables on these pages"
    return {"formula_cdm": cdm, "table_teds": tables} | (needs if lacking else {})


def _failed_are(rows: Sequence[SampleScores], answered: int) -> FailedAre:
    """Missing images are left out; files that are no text, and images whose scorer failed, are empty answers."""
    if answered == len(rows):
        return "empty"
    failed = sum(row.outcome in FAILED for row in rows)
    return "left out" if failed == len(rows) - answered else "partly left out"


def _missing_warning(missing: Sequence[str], total: int, whole: FinalScore, official: FinalScore) -> str:
    """The table as it would be if a missing image were an empty answer, beside the official one."""
    counted, there = table_row(whole), table_row(official)
    changed = [
        f"{name} {_shown(counted[name])} (official {_shown(there[name])})"
        for name in _SHOWN
        if counted[name] != there[name]
    ]
    named = missing[0] if len(missing) == 1 else f"{missing[0]}, …"
    return (
        f"missing-prediction: {len(missing):,} of {total:,} images have none and are left out, as upstream does "
        f"({named}); counted as empty: {', '.join(changed) or 'the same'}"
    )


def _with_effects(
    lines: Sequence[str], rows: Sequence[SampleScores], official: FinalScore, without: FinalScore
) -> list[str]:
    """The warnings; those of what moves the score without being read off it with the number that there would be."""
    said = {_SUFFIX_RULE: lambda: _rule_off(official, without), HIDDEN_MARKS: lambda: beside_the_score(rows)}
    return [line + (said[flag]() if (flag := line.partition(":")[0]) in said else "") for line in lines]


def _rule_off(official: FinalScore, without: FinalScore) -> str:
    there, other = official.splits, without.splits
    changed = [
        f"{name} {100 * other[split]:.2f} (official {100 * there[split]:.2f})"
        for name, split in SPLIT_COLUMNS.items()
        if split in there and split in other and there[split] != other[split]
    ]
    return f"; without the rule: {', '.join(changed) or 'the same'}"


def _official_row(score: FinalScore) -> str:
    """The columns of the official table that are not languages."""
    row: Mapping[str, float | None] = table_row(score)
    shown = [f"{name} {_shown(row[name])}" for name in _SHOWN if row[name] is not None]
    return f"official table figures: {' · '.join(shown)}" if shown else ""


def _pages_by_language(pages: Sequence[ScoredPage]) -> dict[str, int]:
    idents = {page.page_id for page in pages}
    return dict(sorted(Counter(printed_language(prefix_of(ident)) for ident in idents).items()))


def _shown(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.1f}"
