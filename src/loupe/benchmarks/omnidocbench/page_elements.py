"""Turn groups of the mixed match into samples of the elements text_block, display_formula and reading_order.

Version 1.6 looks for badly matched texts in neighbouring pieces of the answer, and compares a pair of text and formula
as text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from loupe.benchmarks.omnidocbench.formula_candidates import Candidate, choose
from loupe.benchmarks.omnidocbench.formula_normalization import without_delimiters
from loupe.benchmarks.omnidocbench.formula_sequences import pool_of
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA, IGNORED, TEXTS, GroundTruth
from loupe.benchmarks.omnidocbench.line_match import as_text, is_formula_as_text
from loupe.benchmarks.omnidocbench.records import (
    Block,
    Item,
    MatchedSample,
    PredictedItem,
    TooMuchWorkError,
    Work,
    piece_of,
)
from loupe.benchmarks.omnidocbench.text_normalization import (
    guarded_formulas_to_unicode,
    normalize_guarded_text,
    with_formulas_normalized,
)
from loupe.metrics import normalized_edit_distance

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.lines import PredictedLine
    from loupe.benchmarks.omnidocbench.rules import Rules


_SCORED_TEXTS: Final = tuple(category for category in TEXTS if category not in IGNORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedMatch:
    """The elements that were matched together. `sources` are the predictions in the order of the match, neither split
    nor filtered.

    `ignored` are the samples of blocks that take their predictions before the match proper.
    """

    ground_truth: GroundTruth
    items: Sequence[Item]
    sources: Sequence[PredictedItem]
    predicted: Sequence[PredictedLine]
    samples: Sequence[MatchedSample]
    ignored: Sequence[MatchedSample]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """Samples of texts and formulas; `formula_choice` names the way in which formulas were paired, where several are
    tried."""

    texts: Sequence[MatchedSample]
    formulas: Sequence[MatchedSample]
    formulas_as_text: Sequence[MatchedSample] = ()
    formula_choice: str = ""
    #: Whether the ways to pair formulas were too many to try.
    given_up: bool = False
    upstream_error: str = ""
    #: The indices of the predicted lines that are in a sample of any element.
    scored_lines: Set[int] = frozenset()


def of_mixed_match(mixed: MixedMatch, rules: Rules) -> Elements:
    """As matched; formulas that were matched to text are scored as text (1.5)."""
    formulas = [sample for sample in mixed.samples if sample.gt_category_type == FORMULA]
    with_text = [as_text(sample, rules) for sample in formulas if is_formula_as_text(sample)]
    return Elements(
        texts=_texts(mixed.samples),
        formulas=[sample for sample in formulas if not is_formula_as_text(sample)],
        formulas_as_text=[sample for sample, _ in with_text],
        upstream_error=next((error for _, error in with_text if error), ""),
        scored_lines={
            index for sample in mixed.samples if sample.gt_category_type not in IGNORED for index in sample.pred_idx
        },
    )


def of_formulas_matched_again(mixed: MixedMatch, rules: Rules) -> Elements:
    """Badly matched texts are looked for in what stands near them, and formulas are matched alone (1.6)."""
    samples = [compared_as_text(sample) for sample in (*mixed.samples, *mixed.ignored)]
    samples = with_local_spans(samples, mixed.sources)
    current = [sample for sample in samples if sample.gt_category_type == FORMULA]
    blocks, pool = mixed.ground_truth.formulas(), pool_of(mixed.items)
    chosen, given_up = _chosen(blocks, pool, current, rules, mixed.work)
    texts, formulas = _texts(samples), current if given_up else chosen.rows() if chosen else ()
    return Elements(
        texts=texts,
        formulas=formulas,
        formula_choice=chosen.name if chosen else "",
        given_up=given_up,
        scored_lines=_scored_lines(mixed.predicted, texts, formulas),
    )


def _chosen(
    blocks: Sequence[Block],
    pool: Sequence[PredictedItem],
    current: Sequence[MatchedSample],
    rules: Rules,
    work: Work,
) -> tuple[Candidate | None, bool]:
    """Choose the pairs of formulas, None if there are none; and say whether finding that out was given up."""
    if not blocks and not pool:
        return None, False
    try:
        return choose(blocks, pool, current, rules, work), False
    except TooMuchWorkError:
        return None, True


def _scored_lines(
    predicted: Sequence[PredictedLine], texts: Sequence[MatchedSample], formulas: Sequence[MatchedSample]
) -> set[int]:
    """Lines that are in a sample, or a part of whose item is in one as a formula: those are parted otherwise."""
    pieces = {piece for sample in texts for piece in sample.pieces}
    items = {piece.item for sample in formulas for piece in sample.pieces}
    return {
        index for index, line in enumerate(predicted) if line.source.index in items or piece_of(line.source) in pieces
    }


def _texts(samples: Sequence[MatchedSample]) -> list[MatchedSample]:
    return [sample for sample in samples if sample.gt_category_type in _SCORED_TEXTS]


#: A sample that is worse than this is looked for elsewhere, and must become so much better.
BAD: Final = 0.45
_GAIN: Final = 0.2
#: A block of text without formulas is only looked for if its normal form has so many characters.
_LONG: Final = 80
#: So many pieces before and behind its own are looked at.
_REACH: Final = 8
_INLINE = re.compile(r"\$[^$]+\$|\\\([^)]*\\\)")
_COMMANDS: Final = (r"\frac", r"\sum", r"\int", r"\sqrt", r"\left", r"\right")
_TOLERANCE: Final = 1e-12


class _Bounds(NamedTuple):
    """The limits of a span: what it may consist of, how many pieces it has at most, and how good it must be."""

    categories: tuple[str, ...]
    longest: int
    enough: float


_PLAIN: Final = _Bounds(("text_all",), 4, 0.35)
_WITH_FORMULAS: Final = _Bounds(("text_all", FORMULA), 8, 0.45)


@dataclass(frozen=True, slots=True)
class _Span:
    """Neighbouring pieces, their text in normal form, and how far it is from the block."""

    pieces: range
    norm: str
    edit: float


class _Pool:
    """The pieces of the answer in the order of the match, and each as text."""

    def __init__(self, sources: Sequence[PredictedItem]) -> None:
        self.sources = [source for source in sources if source.item.category in _WITH_FORMULAS.categories]
        self._texts: list[str | None] = [None] * len(self.sources)
        self._norms: dict[range, str] = {}

    def norm(self, span: range) -> str:
        """Neighbouring pieces as one text in normal form."""
        if span not in self._norms:
            self._norms[span] = normalize_guarded_text("".join(map(self._text, span)))
        return self._norms[span]

    def _text(self, index: int) -> str:
        if (text := self._texts[index]) is None:
            item = self.sources[index].item
            text = self._texts[index] = rendered(item.category, item.content)
        return text

    def own(self, sample: MatchedSample) -> list[int]:
        """Return a sample's pieces, taking indices of another list for those of this one, as upstream does."""
        if found := sorted({index for index in sample.pred_idx if index < len(self.sources)}):
            return found
        place = sample.pred_position
        if place is None:
            return []
        return [index for index, source in enumerate(self.sources) if source.item.start <= place <= source.item.end]


def with_local_spans(samples: Sequence[MatchedSample], sources: Sequence[PredictedItem]) -> list[MatchedSample]:
    """The samples, in place of some the same block with the neighbouring pieces that fit it far better.

    Where two want the same piece, the one that gains more has it.
    """
    found = list(samples)
    tried = [number for number, sample in enumerate(samples) if _is_tried(sample)]
    if not tried:
        return found
    pool = _Pool(sources)
    owned = [pool.own(sample) for sample in samples]
    spans = []
    owners = Counter(index for own in owned for index in own)
    for number in tried:
        blocked = {index for index, count in owners.items() if count > (index in owned[number])}
        if span := _best_span(samples[number], pool, owned[number], blocked):
            spans.append((number, span))
    spans.sort(key=lambda each: each[1].edit - samples[each[0]].edit)
    taken: set[int] = set()
    for number, span in spans:
        if taken.isdisjoint(span.pieces):
            taken.update(span.pieces)
            found[number] = _moved(samples[number], span, pool)
    return found


def _is_tried(sample: MatchedSample) -> bool:
    if sample.edit <= BAD or sample.gt_category_type not in ("title", "text_block"):
        return False
    return sample.gt_category_type == "title" or len(sample.norm_gt) >= _LONG or _has_formulas(sample.gt)


def _has_formulas(text: str) -> bool:
    """True if there seem to be formulas in a text."""
    if _INLINE.search(text) or any(command in text for command in _COMMANDS):
        return True
    return ("^" in text or "_" in text) and ("$" in text or "\\" in text)


def _best_span(sample: MatchedSample, pool: _Pool, own: Sequence[int], blocked: set[int]) -> _Span | None:
    """The span that is nearest to the block, of equals the shorter, then the nearer; None if none is good."""
    bounds = _WITH_FORMULAS if _has_formulas(sample.gt) else _PLAIN
    target = _target(sample)
    if not target:
        return None
    best: _Span | None = None
    for span in _spans(pool, own, blocked, bounds):
        norm = pool.norm(span)
        if not norm:
            continue
        found = _Span(span, norm, normalized_edit_distance(norm, target))
        if best is None or _is_nearer(found, best, own):
            best = found
    if best is None or best.edit >= sample.edit - _GAIN or best.edit > bounds.enough:
        return None
    return best


def _target(sample: MatchedSample) -> str:
    if _has_formulas(sample.gt):
        return normalize_guarded_text(with_formulas_normalized(sample.gt))
    return normalize_guarded_text(rendered(sample.gt_category_type, sample.gt))


def _spans(pool: _Pool, own: Sequence[int], blocked: set[int], bounds: _Bounds) -> Iterator[range]:
    """All neighbouring pieces near the block's own that it may have."""
    last = len(pool.sources) - 1
    window = range(max(0, own[0] - _REACH), min(last, own[-1] + _REACH) + 1) if own else range(last + 1)
    free = [
        index in window and index not in blocked and source.item.category in bounds.categories
        for index, source in enumerate(pool.sources)
    ]
    for start in window:
        for stop in range(start + 1, min(start + bounds.longest, window.stop) + 1):
            if not free[stop - 1]:
                break
            yield range(start, stop)


def _is_nearer(span: _Span, other: _Span, own: Sequence[int]) -> bool:
    if abs(span.edit - other.edit) > _TOLERANCE:
        return span.edit < other.edit
    return (len(span.pieces), _away(span, own)) < (len(other.pieces), _away(other, own))


def _away(span: _Span, own: Sequence[int]) -> int:
    return abs(span.pieces.start - own[0]) if own else 0


def _moved(sample: MatchedSample, span: _Span, pool: _Pool) -> MatchedSample:
    """The sample with another prediction; its ground truth stays in the normal form that it had."""
    sources = [pool.sources[index] for index in span.pieces]
    return replace(
        sample,
        pred_idx=tuple(span.pieces),
        pred="".join(source.item.content for source in sources),
        norm_pred=span.norm,
        pred_position=sources[0].item.start,
        pred_category_type="text_block",
        edit=span.edit,
        distance=span.edit,
        step="local span",
        pieces=tuple(map(piece_of, sources)),
    )


_COMPARED_FORMULAS = (FORMULA, "equation_inline")


def compared_as_text(sample: MatchedSample) -> MatchedSample:
    """The sample as it is, unless just one side of it is a formula."""
    categories = sample.gt_category_type, sample.pred_category_type
    if not all(categories) or sum(category in _COMPARED_FORMULAS for category in categories) != 1:
        return sample
    gt = rendered(categories[0], sample.gt)
    pred = rendered(categories[1], sample.pred)
    norm_gt, norm_pred = normalize_guarded_text(gt), normalize_guarded_text(pred)
    edit = normalized_edit_distance(norm_pred, norm_gt)
    return replace(sample, gt=gt, pred=pred, norm_gt=norm_gt, norm_pred=norm_pred, edit=edit)


def rendered(category: str, content: str) -> str:
    """Text with its inline formulas as characters; a formula without its delimiters the same way."""
    return guarded_formulas_to_unicode(without_delimiters(content) if category in _COMPARED_FORMULAS else content)
