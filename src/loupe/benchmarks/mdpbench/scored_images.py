"""A scored image as `scores.jsonl` keeps it: the pages that its answers make, and their samples by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from loupe.benchmarks.mdpbench.page_ids import is_digital
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage, samples_by_element
from loupe.errors import RunError
from loupe.typed import convert
from loupe.types import SampleScores

Split: TypeAlias = Literal["All", "digit", "photo"]
SPLITS: Final[tuple[Split, ...]] = ("All", "digit", "photo")
Samples: TypeAlias = Mapping[str, Sequence[PageSample]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredImage:
    """An image, and one page for each answer to it and each ground truth of it; nearly always one.

    All pages have the id of the image (docs/protocols/mdpbench.md#files). Without an answer there is one page, that of
    an empty answer.
    """

    pages: tuple[ScoredPage, ...]


def to_details(image: ScoredImage) -> dict[str, Any]:
    """The image as the `details` of its line in `scores.jsonl`."""
    details: dict[str, Any] = msgspec.to_builtins(image)
    return details


def from_details(row: SampleScores) -> Sequence[ScoredPage]:
    """The pages of a line; none where scoring failed even for an empty answer. Raises RunError for foreign details."""
    if not row.details:
        return ()
    try:
        return convert(row.details, ScoredImage).pages
    except msgspec.ValidationError as error:
        raise RunError(f"scores of {row.sample!r}: {error}", hint="score it again: loupe score RUN") from None


def image_attributes(images: Iterable[Sequence[ScoredPage]]) -> dict[str, Mapping[str, Any]]:
    """The page attributes by image of the ground truth, in its order; `images` are the pages of each sample."""
    every = [pages for pages in images if pages]
    # An image with several ground truths stands where the first of them does.
    first = {pages[0].image: pages[0].attributes for pages in every}
    return first | {page.image: page.attributes for pages in every for page in pages}


def samples_of_run(pages: Sequence[ScoredPage]) -> Samples:
    """The samples of all pages by element, in upstream's order."""
    return samples_by_element(pages)


def samples_of_image(pages: Sequence[ScoredPage]) -> Samples:
    """The same for one image of a run that has text somewhere: formulas matched to text are text, whatever is here."""
    texts = [
        PageSample(page=page, matched=each)
        for page in pages
        for each in (*page.match.text_block, *page.match.formulas_as_text)
    ]
    return {**samples_by_element(pages), "text_block": texts}


def of_split(samples: Samples, split: Split) -> Samples:
    """The samples of digital pages, of photographs, or all."""
    wanted = _WANTED[split]
    return {element: [each for each in found if wanted(each.page.page_id)] for element, found in samples.items()}


_WANTED: Final[Mapping[Split, Callable[[str], bool]]] = {
    "All": lambda _: True,
    "digit": is_digital,
    "photo": lambda page_id: not is_digital(page_id),
}
