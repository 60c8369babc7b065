"""A scored page as `scores.jsonl` keeps it (docs/benchmarks/omnidocbench.md): all that aggregation and export need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from loupe.benchmarks.omnidocbench.data.prediction_files import cut_extension_like_official
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch, ReadingOrder
from loupe.errors import RunError
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
