"""The JSON files of the official evaluator: every element in three splits, and what each file is called.

Protocol: docs/protocols/mdpbench.md#groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from loupe.benchmarks.mdpbench.final_score import filed_under, formula_values, indexed_key
from loupe.benchmarks.mdpbench.page_ids import is_digital, serves, stem
from loupe.benchmarks.mdpbench.scored_images import SPLITS, Split, of_split, samples_of_run
from loupe.benchmarks.omnidocbench import figures
from loupe.benchmarks.omnidocbench.aggregation import ElementMetrics, Figures, PageNames, element_figures, per_page_edit
from loupe.benchmarks.omnidocbench.figures import inputs_of
from loupe.benchmarks.omnidocbench.official_files import as_json, official_sample
from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage

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
