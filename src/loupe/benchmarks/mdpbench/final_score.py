"""Compute the final score: pages by their tasks, their mean in three splits, and languages.

A scored image in `scores.jsonl` contains its pages and their samples by element.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from loupe.benchmarks.mdpbench.data import LATIN, NON_LATIN, edits_name, is_digital, prefix_of, printed_language
from loupe.benchmarks.omnidocbench.aggregation import per_page_edit
from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage, samples_by_element
from loupe.errors import RunError
from loupe.typed import convert
from loupe.types import Measure, SampleScores

#: The splits as the official table calls them.
SPLIT_COLUMNS: Final[Mapping[str, Split]] = {"All": "All", "Digit.": "digit", "Photo.": "photo"}
_ONE_INDEX = re.compile(r"(.*)_\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScore:
    """The share that is right of a page's text, formulas and tables, 0 to 1; None for a task that it does not have."""

    text: float | None = None
    formula: float | None = None
    table: float | None = None

    @property
    def overall(self) -> float | None:
        """The mean of the tasks that are there; None for a page without any."""
        there = [task for task in (self.text, self.formula, self.table) if task is not None]
        return min(max(sum(there) / len(there), 0.0), 1.0) if there else None


def page_scores(samples: Samples, split: Split, *, suffix_rule: bool = True) -> dict[str, PageScore]:
    """The scores of the pages of a split, by page id. A formula that was joined of several counts as a page of its own.

    `samples` are those of all splits. Without the suffix rule every sample stays with its page.
    """
    of_this = of_split(samples, split)
    texts = _texts(of_this["text_block"], suffix_rule=suffix_rule)
    formulas = _means(formula_values(of_this["display_formula"]), split)
    tables = _means(table_values(of_this["table"]), split)
    return {
        page: PageScore(text=texts.get(page), formula=formulas.get(page), table=tables.get(page))
        for page in dict.fromkeys((*texts, *formulas, *tables))
    }


def filed_under(sample: PageSample) -> str:
    """The official name under which the edits of a sample are summed up."""
    return edits_name(sample.page.page_id, sample.matched)


def page_of(sample: PageSample) -> str:
    """The page that it is on: the same without the suffix rule."""
    return sample.page.page_id


def formula_values(samples: Iterable[PageSample]) -> dict[str, float]:
    """CDM by page and indices, as `…_per_sample_CDM.json` has it; of several with the same key the last one stays."""
    return _by_key(samples, lambda matched: matched.cdm)


def table_values(samples: Iterable[PageSample]) -> dict[str, float]:
    """TEDS in the same way, as in `…_per_table_TEDS.json`."""
    return _by_key(samples, lambda matched: matched.teds or 0.0)


def indexed_key(sample: PageSample) -> str:
    """The page and the ground-truth indices of a formula or table: `ko_note_3_[2]`, or `ko_note_3_[2, 3]` if joined."""
    indices = list(sample.matched.gt_idx) if isinstance(sample.matched, MatchedSample) else []
    return f"{sample.page.page_id}_{indices}"


def has_one_index(key: str) -> bool:
    """True if a key is one that the final score can tell the page of."""
    return _ONE_INDEX.fullmatch(key) is not None


def _texts(samples: Sequence[PageSample], *, suffix_rule: bool) -> dict[str, float]:
    pages = {page_of(sample) for sample in samples}
    edits = per_page_edit(samples, filed_under if suffix_rule else page_of)
    return {
        page: min(max(1 - edit, 0.0), 1.0) for page, edit in edits.items() if page in pages and not math.isnan(edit)
    }


def _by_key(samples: Iterable[PageSample], value: Callable[[MatchedSample], float | None]) -> dict[str, float]:
    found = {}
    for sample in samples:
        if isinstance(sample.matched, MatchedSample) and (one := value(sample.matched)) is not None:
            found[indexed_key(sample)] = one
    return found


def _means(values: Mapping[str, float], split: Split) -> dict[str, float]:
    """Means by page. What is no page's key is one of its own: of All, and of digital, as upstream takes the unknown."""
    pages: dict[str, list[float]] = defaultdict(list)
    for key, value in values.items():
        one = _ONE_INDEX.fullmatch(key)
        if one is not None or split != "photo":
            pages[one[1] if one else key].append(value)
    return {page: sum(found) / len(found) for page, found in pages.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalScore:
    """The unrounded means of a run: by split (a split without pages is absent), and of all by language prefix."""

    splits: Mapping[Split, float]
    pages: Mapping[Split, int]
    languages: Mapping[str, float]

    def printed_languages(self) -> dict[str, float]:
        """Percent by language, rounded to one decimal; of prefixes that differ in capitals the last one stays."""
        return {printed_language(name): round(value * 100, 1) for name, value in self.languages.items()}

    @property
    def latin(self) -> float | None:
        """The mean of rounded language scores, in percent; None without such a language."""
        return self._average(LATIN)

    @property
    def non_latin(self) -> float | None:
        """The same of the other scripts."""
        return self._average(NON_LATIN)

    def _average(self, languages: Sequence[str]) -> float | None:
        printed = self.printed_languages()
        there = [printed[name] for name in languages if name in printed]
        return round(sum(there) / len(there), 1) if there else None


def final_score(samples: Samples, *, suffix_rule: bool = True) -> FinalScore:
    """Compute what `calculate_scores.py` makes of the samples of a run."""
    splits: dict[Split, float] = {}
    counts: dict[Split, int] = {}
    languages: dict[str, float] = {}
    for split in SPLITS:
        pages = page_scores(samples, split, suffix_rule=suffix_rule)
        values = {page: value for page, score in pages.items() if (value := score.overall) is not None}
        if values:
            splits[split] = float(np.mean(list(values.values())))
            counts[split] = len(values)
        if split == "All":
            languages = _by_language(values)
    return FinalScore(splits=splits, pages=counts, languages=languages)


def _by_language(values: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for page, value in values.items():
        found[prefix_of(page)].append(value)
    return {name: sum(scores) / len(scores) for name, scores in sorted(found.items())}


def table_row(score: FinalScore) -> dict[str, Any]:
    """The official table of a run: percent, rounded to one decimal as upstream rounds; None where it prints N/A."""
    splits = {name: _of_numpy(score.splits.get(split)) for name, split in SPLIT_COLUMNS.items()}
    return {**splits, "Latin": score.latin, "Non-Latin": score.non_latin, "languages": score.printed_languages()}


def _of_numpy(value: float | None) -> float | None:
    """These are NumPy's numbers upstream, which round by scaling."""
    return None if value is None else float(np.round(np.float64(value * 100), 1))


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


def _mean_of_pages(sums: Any) -> Any:
    """The mean of page scores; nan where a formula has no CDM."""
    return np.where(sums[..., 2] > 0, np.nan, sums[..., 0] / sums[..., 1])


def _mean_of_languages(sums: Any) -> Any:
    """The mean of the means of the languages that are there; nan where a formula has no CDM."""
    values, counts, lacking = sums[..., 0:-1:2], sums[..., 1:-1:2], sums[..., -1]
    there = counts > 0
    means = np.where(there, values / np.where(there, counts, 1.0), 0.0)
    number = there.sum(axis=-1)
    return np.where((lacking > 0) | (number == 0), np.nan, means.sum(axis=-1) / np.where(number, number, 1))


def _mean_of_documents(rows: Any) -> float:
    """Digital page less the mean of its photographs, averaged over the documents that have both; nan without any.

    Rows are (number of the document, 1 if digital, page score, 1 where a formula has no CDM). A document that was drawn
    several times has several digital pages, and its weight.
    """
    _, document = np.unique(rows[:, 0], return_inverse=True)
    digital, score = rows[:, 1], rows[:, 2]
    counts = [np.bincount(document, weights) for weights in (digital, 1 - digital)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if not both.any() or rows[:, 3].any():
        return float("nan")
    sums = [np.bincount(document, weights * score) for weights in (digital, 1 - digital)]
    losses = sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both]
    return float(np.average(losses, weights=counts[0][both]))


def _overall(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, value=_mean_of_pages, bounded=True)


def _script(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, value=_mean_of_languages, bounded=True)


def _edits(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, unit="number", bounded=True)


MEASURES: Final = (
    _overall("overall", "overall (All)"),
    _overall("overall_digital", "digital pages (Digit.)"),
    _overall("overall_photographed", "photographs (Photo.)"),
    Measure(
        name="photo_loss",
        title="lost on photographs of the same document",
        higher_is_better=False,
        value=_mean_of_documents,
        pooled=True,
    ),
    _script("latin", "Latin scripts (mean of languages)"),
    _script("non_latin", "other scripts (mean of languages)"),
    _overall("overall_without_suffix_rule", "overall without the suffix rule"),
    _edits("text_edit", "text (edit distance)"),
    _edits("text_edit_with_marks", "text with vowel signs, tones, accents"),
    _edits("formula_edit", "formulas (edit distance)"),
    Measure(name="formula_cdm", title="formulas (CDM)"),
    Measure(name="table_teds", title="tables (TEDS)"),
    Measure(name="table_teds_struct", title="table structure (TEDS-S)"),
    _edits("table_edit", "tables (edit distance)"),
    _edits("reading_order_edit", "reading order (edit distance)"),
)
