"""One image: its answers matched, what each page of it is worth, and what is remarkable about it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from loupe.benchmarks.mdpbench.data import ground_truths
from loupe.benchmarks.mdpbench.final_score import (
    PageScore,
    filed_under,
    formula_values,
    has_one_index,
    page_of,
    page_scores,
)
from loupe.benchmarks.mdpbench.page_ids import (
    LATIN,
    NON_LATIN,
    document_of,
    is_digital,
    prefix_of,
    printed_language,
)
from loupe.benchmarks.mdpbench.scored_images import SPLITS, ScoredImage, Split, samples_of_image
from loupe.benchmarks.omnidocbench.aggregation import edit_rate
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, hidden_marks, page_flags, rate_with_marks
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench.rules import MDPBENCH as RULES
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage, image_name
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
    """What an answered image is worth in every measure: one score for each page id, and for each joined formula."""
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
