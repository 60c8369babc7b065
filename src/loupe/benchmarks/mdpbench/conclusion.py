"""Conclude a run over all images: the official table and files, its variants, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from loupe.benchmarks.mdpbench.data import is_digital, prefix_of, printed_language, serves, stem
from loupe.benchmarks.mdpbench.final_score import (
    SPLIT_COLUMNS,
    SPLITS,
    FinalScore,
    Split,
    filed_under,
    final_score,
    formula_values,
    from_details,
    image_attributes,
    indexed_key,
    of_split,
    samples_of_run,
    table_row,
)
from loupe.benchmarks.omnidocbench import figures
from loupe.benchmarks.omnidocbench.aggregation import ElementMetrics, Figures, PageNames, element_figures, per_page_edit
from loupe.benchmarks.omnidocbench.conclusion import attribute_slices
from loupe.benchmarks.omnidocbench.figures import formula_warnings, inputs_of
from loupe.benchmarks.omnidocbench.official_files import as_json, official_sample
from loupe.benchmarks.omnidocbench.page_flags import FLAGS as OF_OMNIDOCBENCH
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, Flag, beside_the_score, flag_warnings
from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage
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
    """Return the reason why formulas lack a CDM, "" if none does."""
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


#: `configs/end2end.yaml` of the official evaluator.
OFFICIAL_METRICS: Final[Mapping[str, ElementMetrics]] = {
    "text_block": ElementMetrics(metric=("Edit_dist",)),
    "display_formula": ElementMetrics(metric=("Edit_dist", "CDM")),
    "table": ElementMetrics(metric=("TEDS", "Edit_dist")),
    "reading_order": ElementMetrics(metric=("Edit_dist",)),
}

#: What becomes of samples as in OmniDocBench 1.5; CDM alone differs (docs/protocols/mdpbench.md#cdm).
RECKONING: Final = replace(
    figures.RECKONING_1_5, name="MDPBench", metrics=OFFICIAL_METRICS, marks_beside=True, cdm_profile="mdpbench"
)


def metric_result(
    pages: Sequence[ScoredPage],
    images: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, ElementMetrics] = OFFICIAL_METRICS,
) -> dict[str, Figures]:
    """`all`, `group` and `page` of every element, each for All, digit and photo; a split without samples is absent.

    `images` are the attributes of all images of the ground truth, in its order.
    """
    samples, names = samples_of_run(pages), page_names(pages, images)
    splits = {split: of_split(samples, split) for split in SPLITS}
    return {
        element: {
            f"{name}{_ending(split)}": figures
            for split in SPLITS
            if splits[split][element]
            for name, figures in element_figures(splits[split][element], wanted, names).items()
        }
        for element, wanted in metrics.items()
    }


def page_names(pages: Sequence[ScoredPage], images: Mapping[str, Mapping[str, Any]]) -> PageNames:
    """Edits are filed by the suffix rule; `page` pools what belongs to the first image whose name begins the id."""
    stems = {image: stem(image) for image in images}
    found: dict[str, str] = {}
    for page in pages:
        ident = page.page_id
        if ident not in found:
            fitting = (image for image, name in stems.items() if serves(name, ident))
            found[ident] = ident if ident in images else next(fitting, page.image)

    def of_attributes(sample: PageSample) -> tuple[str, Mapping[str, Any]]:
        image = found[sample.page.page_id]
        return image, images.get(image, sample.page.attributes)

    return PageNames(of_edits=filed_under, of_attributes=of_attributes)


def official_files(
    pages: Sequence[ScoredPage],
    prefix: str,
    images: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, ElementMetrics] = OFFICIAL_METRICS,
) -> Iterator[tuple[str, str]]:
    """Name and text of each file; values that cannot be computed are a bare NaN, as upstream writes them."""
    samples = samples_of_run(pages)
    for element, wanted in metrics.items():
        for split in SPLITS:
            yield from _files_of_split(of_split(samples, split)[element], wanted, f"{prefix}_{element}_{split}")
        yield f"{prefix}_{element}_result.json", as_json([_saved(sample, wanted) for sample in samples[element]])
    yield f"{prefix}_metric_result.json", as_json(metric_result(pages, images, metrics))


def _files_of_split(samples: Sequence[PageSample], wanted: ElementMetrics, prefix: str) -> Iterator[tuple[str, str]]:
    if not samples:
        return
    if "Edit_dist" in wanted.metric:
        yield f"{prefix}_per_page_edit.json", as_json(per_page_edit(samples, filed_under))
    if "TEDS" in wanted.metric:
        yield f"{prefix}_per_table_TEDS.json", as_json(_teds_by_table(samples))
    if "CDM" in wanted.metric and (values := formula_values(samples)):
        yield f"{prefix}_per_sample_CDM.json", as_json(values)
        yield f"{prefix}_result.json", as_json([_as_cdm_saw_it(sample, wanted) for sample in samples])


def _teds_by_table(samples: Sequence[PageSample]) -> dict[str, dict[str, float]]:
    return {
        indexed_key(sample): {"TEDS": matched.teds or 0.0, "TEDS_structure_only": matched.teds_structure_only or 0.0}
        for sample in samples
        if isinstance(matched := sample.matched, MatchedSample)
    }


def official_record(sample: PageSample, wanted: ElementMetrics) -> dict[str, Any]:
    """One sample with upstream's names: OmniDocBench's, and the page, its kind, and where its edits are filed."""
    page_id = sample.page.page_id
    record = official_sample(sample, wanted) | {"img_id": page_id, "page_id": page_id, "is_digit": is_digital(page_id)}
    return record | ({"image_name": filed_under(sample)} if "Edit_dist" in wanted.metric else {})


def _saved(sample: PageSample, wanted: ElementMetrics) -> dict[str, Any]:
    """As the file of all samples has it: upstream keeps CDM in a copy, so it is not in this one."""
    return official_record(sample, ElementMetrics(metric=tuple(name for name in wanted.metric if name != "CDM")))


def _as_cdm_saw_it(sample: PageSample, wanted: ElementMetrics) -> dict[str, Any]:
    """The copy: cleaned texts, and the name of what CDM drew."""
    record = official_record(sample, wanted)
    if not isinstance(sample.matched, MatchedSample):
        return record
    inputs = inputs_of(sample.matched, RECKONING)
    drawn = f"{sample.page.page_id}_{next(iter(sample.matched.gt_idx), '')}"
    return record | {"gt": inputs.reference, "pred": inputs.prediction, "img_id_cdm": drawn}


def _ending(split: Split) -> str:
    return "" if split == "All" else f"_{split}"
