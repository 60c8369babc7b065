"""Score one image: match its answers and score each page; compare small runs with the official evaluator's."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from loupe.benchmarks.mdpbench.conclusion import RECKONING, metric_result
from loupe.benchmarks.mdpbench.data import (
    LATIN,
    NON_LATIN,
    answers_in_folder,
    document_of,
    ground_truths,
    is_digital,
    page_id,
    prefix_of,
    printed_language,
    slim_images,
    stem,
)
from loupe.benchmarks.mdpbench.final_score import (
    SPLITS,
    PageScore,
    ScoredImage,
    Split,
    filed_under,
    final_score,
    formula_values,
    has_one_index,
    page_of,
    page_scores,
    samples_of_image,
    samples_of_run,
)
from loupe.benchmarks.omnidocbench.aggregation import edit_rate
from loupe.benchmarks.omnidocbench.figures import inputs_of
from loupe.benchmarks.omnidocbench.official_files import numbers
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, hidden_marks, page_flags, rate_with_marks
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench.rules import MDPBENCH as RULES
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage, as_read_from_its_file, image_name
from loupe.types import Sample, Score

_OVERALL: Final[dict[Split, str]] = {"All": "overall", "digit": "overall_digital", "photo": "overall_photographed"}
_SCRIPTS: Final = {"latin": LATIN, "non_latin": NON_LATIN}


def match_image(page: Sample, answers: Sequence[str]) -> list[PageMatch]:
    """Each answer against each ground truth of the image, those of one ground truth together, as upstream goes."""
    return [match_page(truth, answer, rules=RULES) for truth in ground_truths(page) for answer in answers]


def scored_image(
    page: Sample, matches: Sequence[PageMatch], *, answered: bool, unreadable: bool = False
) -> ScoredImage:
    """The image with its matches, in the order in which `match_image` gives them."""
    truths = ground_truths(page)
    each = len(matches) // len(truths)
    return ScoredImage(
        pages=tuple(
            ScoredPage(
                image=image_name(truth["page_info"]["image_path"]),
                page_id=page.id,
                attributes=truth["page_info"]["page_attribute"],
                match=match,
                answered=answered,
                flags=_flags(page.id, match, unreadable=unreadable),
            )
            for number, truth in enumerate(truths)
            for match in matches[number * each : (number + 1) * each]
        )
    )


def _flags(page_id: str, match: PageMatch, *, unreadable: bool) -> dict[str, float]:
    page = ScoredPage(image="", page_id=page_id, attributes={}, match=match)
    samples = samples_of_image([page])
    left = sum(filed_under(sample) != page_of(sample) for sample in samples["text_block"])
    joined = sum(not has_one_index(key) for key in formula_values(samples["display_formula"]))
    marks = hidden_marks(_matched(samples["text_block"]))
    own = {"suffix-rule": left, "joined-formula-page": joined, HIDDEN_MARKS: marks, "upstream-error": unreadable}
    return page_flags(match) | {name: float(count) for name, count in own.items() if count}


def image_scores(image: ScoredImage) -> list[Score]:
    """Score an answered image in every measure: one score for each page id, and for each joined formula."""
    return [*_overall_scores(image), *_element_scores(image)]


def _overall_scores(image: ScoredImage) -> Iterator[Score]:
    """The page scores, by split and script. The last count is of formulas without CDM: then there is no overall."""
    samples = samples_of_image(image.pages)
    lacking = float(any(each.cdm is None for each in _matched(samples["display_formula"])))
    for split in SPLITS:
        for page, value in _overalls(page_scores(samples, split)):
            yield Score(measure=_OVERALL[split], counts=(value, 1.0, lacking), unit=page)
            if split == "All":
                yield from _script_scores(page, value, lacking)
            if split == "All" and page == image.pages[0].page_id:
                counts = (_number(document_of(page)), float(is_digital(page)), value, lacking)
                yield Score(measure="photo_loss", counts=counts, unit=page)
    for page, value in _overalls(page_scores(samples, "All", suffix_rule=False)):
        yield Score(measure="overall_without_suffix_rule", counts=(value, 1.0, lacking), unit=page)


def _number(document: str) -> float:
    """A number that stands for a document, as counts are numbers."""
    return float(zlib.crc32(document.encode("utf-8", "replace")))


def _overalls(pages: dict[str, PageScore]) -> Iterator[tuple[str, float]]:
    return ((page, score.overall) for page, score in pages.items() if score.overall is not None)


def _script_scores(page: str, value: float, lacking: float) -> Iterator[Score]:
    """Sums and counts for each language of its script, and what lacks CDM."""
    language = printed_language(prefix_of(page))
    for measure, languages in _SCRIPTS.items():
        if language in languages:
            counts = [0.0] * (2 * len(languages))
            counts[2 * languages.index(language) : 2 * languages.index(language) + 2] = [value, 1.0]
            yield Score(measure=measure, counts=(*counts, lacking), unit=page)


def _element_scores(image: ScoredImage) -> Iterator[Score]:
    samples = samples_of_image(image.pages)
    page_id = image.pages[0].page_id
    pages = page_scores(samples, "All")
    own = {name: [each for each in found if filed_under(each) == page_id] for name, found in samples.items()}
    values: dict[str, float | None] = {
        "text_edit": _rate(own["text_block"]),
        "text_edit_with_marks": rate_with_marks(_matched(own["text_block"]), RULES.latex_to_text),
        "formula_edit": _rate(own["display_formula"]),
        "table_edit": _rate(own["table"]),
        "reading_order_edit": _rate(own["reading_order"]),
    }
    for measure, value in values.items():
        if value is not None:
            yield Score(measure=measure, counts=(value, 1.0), unit=page_id)
    for page, score in pages.items():
        if score.formula is not None:
            yield Score(measure="formula_cdm", counts=(score.formula, 1.0), unit=page)
        if score.table is not None:
            yield Score(measure="table_teds", counts=(score.table, 1.0), unit=page)
    if tables := _matched(samples["table"]):
        structure = sum(each.teds_structure_only or 0.0 for each in tables) / len(tables)
        yield Score(measure="table_teds_struct", counts=(structure, 1.0), unit=page_id)


def _rate(samples: Sequence[PageSample]) -> float | None:
    """Edits over lengths; None where there is nothing to compare."""
    return edit_rate(samples) if any(sample.matched.upper_len for sample in samples) else None


def _matched(samples: Sequence[PageSample]) -> list[MatchedSample]:
    """The samples without the pages that they are on."""
    return [each.matched for each in samples if isinstance(each.matched, MatchedSample)]


def compare_run(given: Mapping[str, Any], expected: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for every number of a run; one that only one side has is infinitely far off.

    The official values of CDM are given, as the cases were made without TeX.
    """
    pages = list(pages_of_run(given))
    images = {page["page_info"]["image_path"]: page["page_info"]["page_attribute"] for page in given["gt_pages"]}
    computed = {"metric_result": metric_result(pages, images), "summary": summary(pages)}
    ours, official = (dict(numbers({name: figures[name] for name in computed})) for figures in (computed, expected))
    names = [*official, *(name for name in ours if name not in official)]
    return [(ours.get(name, math.inf), official.get(name, -math.inf)) for name in names]


def run_from_oracle(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A run of the oracles that has its pages with it; none where nothing on them is scored."""
    if "gt_pages" in case["input"] and case["expected"]["summary"]:
        given = {**case["input"], "cdm_values": case["cdm_values"]}
        yield {"id": case["id"], "input": given, "expected": case["expected"]}


def pages_of_run(given: Mapping[str, Any]) -> Iterator[ScoredPage]:
    """The scored pages of a run, in upstream's order, with the CDM that is given."""
    truths = [Sample(id="", truth=page) for page in given["gt_pages"]]
    samples = [replace(page, id=page_id(page)) for page in truths]
    if given.get("slim"):
        names = sorted(name for name in given["files"] if name.endswith((".md", ".mmd")))
        samples = list(slim_images(truths, [Path(f"{ident}.jpg") for ident in dict.fromkeys(map(stem, names))]))
    values = {(one["pred"], one["gt"]): one["value"] for one in given["cdm_values"]}
    files = answers_in_folder(samples, given["files"])
    for page in samples:
        if answers := [as_read_from_its_file(given["files"][name]) for name in files[page.id]]:
            matches = [_with_values(match, values) for match in match_image(page, answers)]
            yield from scored_image(page, matches, answered=True).pages


def summary(pages: Sequence[ScoredPage]) -> dict[str, Any]:
    """The final score as the oracles have it: every page of All, unrounded means of splits and languages."""
    samples = samples_of_run(pages)
    score = final_score(samples)
    found: dict[str, Any] = {
        split: {"overall": score.splits[split], "n_pages": score.pages[split]}
        for split in SPLITS
        if split in score.splits
    }
    if found:
        of_pages = {page: _page_record(one) for page, one in page_scores(samples, "All").items()}
        found["All"] |= {"lang": dict(score.languages), "pages": of_pages}
    return found


def _page_record(score: PageScore) -> dict[str, float | None]:
    tasks = {"s_text": score.text, "s_formula": score.formula, "s_table": score.table}
    return {**tasks, "overall_i_scheme2": score.overall}


def _with_values(match: PageMatch, values: Mapping[tuple[str, str], float]) -> PageMatch:
    pairs = ((sample, inputs_of(sample, RECKONING)) for sample in match.display_formula)
    formulas = (replace(sample, cdm=values.get((each.prediction, each.reference))) for sample, each in pairs)
    return replace(match, display_formula=tuple(formulas))
