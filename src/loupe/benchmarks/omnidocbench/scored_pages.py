"""Score the samples of a page, and store the page in `scores.jsonl` (docs/benchmarks/omnidocbench.md).

The stored page contains all that aggregation and export need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import msgspec
from rapidfuzz.distance import Levenshtein

from loupe.benchmarks.omnidocbench.line_match import reading_orders
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch, ReadingOrder
from loupe.errors import RunError
from loupe.metrics import levenshtein_distance
from loupe.metrics.html_markup import as_read_by_libxml2
from loupe.metrics.teds import compare_tables
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from loupe.typed import convert
from loupe.types import SampleScores


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPage:
    """One page: its image's name (upstream's img_id), its attributes, its match, and what is remarkable about it.

    `answered` is false where there is no prediction: `match` is then that of an empty one, and no official average
    knows the page (1.5). `flags` are counts by name (docs/protocols/omnidocbench.md#modes). `annotated` are the
    elements that the page has in the ground truth, where one without a sample of them counts as 0 (1.6); else None.
    `cdm_computed` is whether CDM was asked for and can be drawn here: only then does the lack of a formula count as 0.
    """

    image: str
    attributes: Mapping[str, Any]
    match: PageMatch
    answered: bool = True
    flags: Mapping[str, float] = field(default_factory=dict)
    #: Its name where an evaluator does not make it of the image's (docs/protocols/mdpbench.md#files).
    page_id: str = ""
    annotated: tuple[str, ...] | None = None
    cdm_computed: bool = False

    @property
    def stem(self) -> str:
        """The name under which upstream files the attributes of the page."""
        return self.page_id or cut_extension_like_official(self.image)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSample:
    """A sample of one element, and the page that it is on."""

    page: ScoredPage
    matched: MatchedSample | ReadingOrder


def to_details(page: ScoredPage) -> dict[str, Any]:
    """The page as the `details` of its line in `scores.jsonl`."""
    details: dict[str, Any] = msgspec.to_builtins(page)
    return details


def from_details(row: SampleScores) -> ScoredPage | None:
    """The page of a line; None where scoring failed even for an empty answer. Raises RunError for foreign details."""
    if not row.details:
        return None
    try:
        return convert(row.details, ScoredPage)
    except msgspec.ValidationError as error:
        raise RunError(f"scores of {row.sample!r}: {error}", hint="score it again: loupe score RUN") from None


def samples_by_element(pages: Sequence[ScoredPage]) -> dict[str, list[PageSample]]:
    """The samples of all pages in upstream's order."""
    texts = [PageSample(page=page, matched=each) for page in pages for each in page.match.text_block]
    formulas = [PageSample(page=page, matched=each) for page in pages for each in page.match.display_formula]
    tables = [PageSample(page=page, matched=each) for page in pages for each in page.match.table]
    orders = [PageSample(page=page, matched=order) for page in pages if (order := page.match.reading_order)]
    return {
        "text_block": texts + _formulas_scored_as_text(pages, texts),
        "display_formula": formulas,
        "table": _latex_tables_last(tables),
        "reading_order": orders,
    }


def _formulas_scored_as_text(pages: Sequence[ScoredPage], texts: Sequence[PageSample]) -> list[PageSample]:
    """Formulas matched to text follow the text of all pages; in a run without any text they vanish.

    Protocol: docs/protocols/omnidocbench.md#samples.
    """
    if not texts:
        return []
    return [PageSample(page=page, matched=each) for page in pages for each in page.match.formulas_as_text]


def _latex_tables_last(tables: Sequence[PageSample]) -> list[PageSample]:
    """Samples assigned in LaTeX are put behind those of all pages in HTML (docs/protocols/omnidocbench.md#tables)."""
    return sorted(tables, key=lambda each: isinstance(each.matched, MatchedSample) and each.matched.latex_zeroed)


def score_edits(sample: MatchedSample) -> MatchedSample:
    """The sample with the edits of its texts and the length that they are divided by."""
    prediction, reference = scored_texts(sample)
    return replace(
        sample,
        edit_num=levenshtein_distance(prediction, reference),
        upper_len=max(len(prediction), len(reference)),
    )


def score_table(sample: MatchedSample) -> MatchedSample:
    """The sample with both TEDS as well: 0 where the official evaluator fails.

    Raises TableTooLargeError for tables beyond all measure: an error of their page.
    """
    try:
        tables = compare_tables(*scored_tables(sample), variant="omnidocbench")
    except TableTooLargeError:
        raise
    except TedsError:
        return replace(score_edits(sample), teds=0.0, teds_structure_only=0.0)
    return replace(score_edits(sample), teds=tables.teds, teds_structure_only=tables.teds_struct)


def scored_tables(sample: MatchedSample) -> tuple[str, str]:
    """The same as markup that every libxml2 reads as that of the official environment does (lxml 4.9.1)."""
    prediction, reference = scored_texts(sample)
    return as_read_by_libxml2(prediction, "2.9"), as_read_by_libxml2(reference, "2.9")


def scored_texts(sample: MatchedSample) -> tuple[str, str]:
    """Prediction and reference: the normal forms, or the raw text of a side whose normal form is empty."""
    return sample.norm_pred or sample.pred, sample.norm_gt or sample.gt


def score_reading_order(samples: Sequence[MatchedSample]) -> ReadingOrder | None:
    """The reading order of a page from the samples that count for it; None where none has an order."""
    gt, pred = reading_orders(samples)
    longest = max(len(gt), len(pred))
    if not longest:
        return None
    edits = Levenshtein.distance(pred, gt)
    return ReadingOrder(gt=gt, pred=pred, edit=edits / longest, edit_num=edits, upper_len=longest)


def cut_extension_like_official(image: str) -> str:
    """The name of an image without its last four characters, whatever they are: `a.jpeg` is `a.`.

    Protocol: docs/protocols/omnidocbench.md#files.
    """
    return image[:-4]


def image_name(image_path: str) -> str:
    """The name of the image in whatever folder the ground truth puts it; upstream's `img_id`."""
    return PurePosixPath(image_path).name


def answer_names(image: str) -> list[str]:
    """The files that upstream tries for a page, in this order; the first that exists counts, even an empty one."""
    stem = cut_extension_like_official(image)
    without_pdf = stem.replace(".pdf", "")
    return [f"{stem}.md", f"{without_pdf}.mmd", f"{without_pdf}.md", f"{image}.md"]


def sample_id(image_path: str) -> str:
    """The id of a page's sample, such that `<id>.md` is one of the files that upstream tries.

    >>> sample_id("images/a.pdf_1.jpg"), sample_id("a.jpeg")
    ('a.pdf_1', 'a.jpeg')
    """
    image = image_name(image_path)
    return cut_extension_like_official(image) if image[-4:-3] == "." else image


def as_read_from_its_file(answer: str) -> str:
    """The answer as upstream gets it: written as UTF-8, without lone surrogates, and read in text mode (#files)."""
    if not answer.isascii():
        answer = answer.encode("utf-8", "replace").decode("utf-8")
    return answer.replace("\r\n", "\n").replace("\r", "\n")
