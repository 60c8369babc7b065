"""List the ways to pair the formulas of a page, in the official order, and choose the one that is scored."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from loupe.benchmarks.omnidocbench.formula_lines import with_logic_braces
from loupe.benchmarks.omnidocbench.formula_sequences import (
    INLINE,
    TOLERANCE,
    Formulas,
    Pair,
    TruthSide,
    as_formula_type,
    formulas_of,
    in_order,
    joined,
    pairs_in_order,
    rows_of,
)
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.line_match import in_match_order, match_lines, sample_of
from loupe.benchmarks.omnidocbench.lines import predicted_lines, truth_lines
from loupe.benchmarks.omnidocbench.records import Block, MatchedSample, PredictedItem, TooMuchWorkError, Work
from loupe.metrics import levenshtein_distance
from loupe.metrics.assignment import assign

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


#: More than these, of both sides together, would need a matrix of more than 128 MB.
_MOST_FORMULAS: Final = 4000
#: The first candidate: what the match of everything made of the formulas.
CURRENT = "current_match"


class Key(NamedTuple):
    """The key that judges a candidate, the least first; `rewritten` is the negative number of rewritten items."""

    total: float
    share: float
    unused: int
    mean: float
    rewritten: int
    missing: int

    def beats(self, other: Key) -> bool:
        """True if it is less; numbers that differ by next to nothing are equal."""
        for mine, theirs in zip(self, other, strict=True):
            if mine != theirs and abs(mine - theirs) > TOLERANCE:
                return mine < theirs
        return False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to pair the formulas. Its rows are only made when they are asked for."""

    name: str
    key: Key
    rows: Callable[[], Sequence[MatchedSample]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The parts that candidates are made of: the formulas of the ground truth and of the answer."""

    truth: TruthSide
    sources: Sequence[PredictedItem]
    rules: Rules
    work: Work
    rewritten: int = 0
    #: What the names of candidates begin with.
    prefix: str = ""

    def unused(self, items: Iterable[PredictedItem]) -> int:
        """Count the formulas of the answer that are not among those that these come from."""
        return max(0, len(self.sources) - len({source.index for source in items}))


class Best:
    """The best candidate so far, and what can still be better. `exhaustive`: everything is taken to be."""

    def __init__(self, *, exhaustive: bool = False) -> None:
        self.candidate: Candidate | None = None
        self.exhaustive = exhaustive

    def offer(self, candidate: Candidate) -> None:
        """Of equals the first stays."""
        if self.candidate is None or candidate.key.beats(self.candidate.key):
            self.candidate = candidate

    def may_lose_to(self, total: float) -> bool:
        """True if a candidate with a total of at least this may win."""
        return self.exhaustive or self.candidate is None or total <= self.candidate.key.total + 1e-9

    def is_final(self, pool: Pool, unused: int) -> bool:
        """True if no further candidate of this pool, which leaves at least so many formulas unused, can be better."""
        if self.exhaustive or self.candidate is None:
            return False
        key = self.candidate.key
        return key.total == 0 and key.unused <= unused and key.rewritten <= -pool.rewritten


def choose(
    blocks: Sequence[Block],
    sources: Sequence[PredictedItem],
    current: Sequence[MatchedSample],
    rules: Rules,
    work: Work,
) -> Candidate | None:
    """The candidate that is scored; None where there is none. `current` are the formulas of the match of everything.

    Raises TooMuchWorkError.
    """
    best = Best()
    for candidate in candidates(blocks, sources, current, rules, work, best):
        best.offer(candidate)
    return best.candidate


def candidates(
    blocks: Sequence[Block],
    sources: Sequence[PredictedItem],
    current: Sequence[MatchedSample],
    rules: Rules,
    work: Work,
    best: Best,
) -> Iterator[Candidate]:
    """In the official order; those that cannot beat `best`, to which each is offered, are left out."""
    rules = replace(rules, normalize_formula=functools.cache(rules.normalize_formula))
    truth = TruthSide(truth_lines(rules.split_blocks(blocks), "parity", rules), work)
    pool = Pool(truth=truth, sources=sources, rules=rules, work=work)
    now = _of_samples(CURRENT, [_as_formula(sample) for sample in current], pool)
    if _is_complete(now.rows(), truth):
        yield now
    yield from _of_pool(pool, best)
    spelled = [with_logic_braces(source.item.content) for source in sources]
    changed = sum(new != source.item.content for new, source in zip(spelled, sources, strict=True))
    if changed:
        rewritten = [
            replace(source, item=replace(source.item, content=new))
            for new, source in zip(spelled, sources, strict=True)
        ]
        yield from _of_pool(replace(pool, sources=rewritten, rewritten=changed, prefix="logic_norm_"), best)


def _of_pool(pool: Pool, best: Best) -> Iterator[Candidate]:
    """All ways to pair these formulas of the answer."""
    if best.is_final(pool, 0):
        return
    quick = _of_samples(pool.prefix + "quick_unsplit", _quickly_matched(pool), pool)
    if _is_complete(quick.rows(), pool.truth):
        yield quick
    # All that follow find a place for one formula of the answer for each of the ground truth at most.
    at_least = max(0, len(pool.sources) - len(pool.truth.lines))
    if best.is_final(pool, at_least):
        return
    whole = formulas_of(pool.truth, pool.sources, pool.rules, split=False)
    yield _of_pairs("hungarian_unsplit", _assigned(whole), whole, pool)
    yield from _in_order("dp_unsplit", whole, pool, best)
    if best.is_final(pool, at_least):
        return
    yield from _of_partitions(pool, best)
    split = formulas_of(pool.truth, pool.sources, pool.rules, split=True)
    if len(split.sources) > len(whole.sources):
        yield from _in_order("split_dp", split, pool, best)


def _quickly_matched(pool: Pool) -> list[MatchedSample]:
    """The formulas alone through the match of everything, those of the answer in one piece."""
    predicted = predicted_lines(in_match_order(pool.sources), "parity", pool.rules)
    match = match_lines(pool.truth.lines, predicted, pool.work, pool.rules)
    return [_as_formula(sample_of(group, pool.truth.lines, predicted, pool.rules)) for group in match.groups]


def _as_formula(sample: MatchedSample) -> MatchedSample:
    return replace(sample, pred_category_type=as_formula_type(sample.pred_category_type))


def _is_complete(rows: Sequence[MatchedSample], truth: TruthSide) -> bool:
    """True if each formula has a row of its own, and none is matched to text."""
    blocks = {row.gt_idx for row in rows}
    return (
        len(rows) == len(truth.lines) == len(blocks)
        and all(len(block) == 1 for block in blocks)
        and all(row.pred_category_type in ("", INLINE, FORMULA) for row in rows)
    )


def _in_order(name: str, formulas: Formulas, pool: Pool, best: Best) -> Iterator[Candidate]:
    """In the order of the page, without gaps in what is joined and with them."""
    for suffix, gaps in (("", False), ("_allow_gaps", True)):
        if gaps and not best.exhaustive and not _has_parted_items(formulas):
            return
        if (pairs := pairs_in_order(formulas, gaps=gaps)) is not None:
            yield _of_pairs(name + suffix, pairs, formulas, pool)


def _has_parted_items(formulas: Formulas) -> bool:
    """True if any item has several lines: only then may what is joined have gaps."""
    return len({source.index for source in formulas.sources}) < len(formulas.sources)


def _of_partitions(pool: Pool, best: Best) -> Iterator[Candidate]:
    """The same assignment for every way to part the formulas of the answer; equal ones once."""
    seen = set()
    for sources in partitions(pool.sources, pool.rules):
        formulas = formulas_of(pool.truth, sources, pool.rules, split=False)
        if not best.may_lose_to(_least_total(formulas)):
            continue
        pairs = _assigned(formulas)
        same = tuple(
            (pool.truth.lines[pair.block].looked_up.order, pair.lines, round(pair.distance, 6)) for pair in pairs
        )
        if same not in seen:
            seen.add(same)
            yield _of_pairs("split_hungarian", pairs, formulas, pool)


def _least_total(formulas: Formulas) -> float:
    """No assignment has a smaller total: each formula with the prediction that is nearest to it."""
    least = np.ones(len(formulas.truth.lines))
    for norm in {line.norm for line in formulas.predicted}:
        np.minimum(least, formulas.truth.column(norm), out=least)
    return float(least.sum())


def _assigned(formulas: Formulas) -> list[Pair]:
    """Each formula with one prediction or none, at the least total distance, for which being alone counts 1.

    Raises TooMuchWorkError.
    """
    blocks, lines = len(formulas.truth.lines), len(formulas.predicted)
    if blocks + lines > _MOST_FORMULAS:
        raise TooMuchWorkError
    costs = np.ones((blocks + lines, blocks + lines))
    costs[blocks:, lines:] = 0
    for column, line in enumerate(formulas.predicted):
        costs[:blocks, column] = formulas.truth.column(line.norm)
    columns = assign(costs)[1].tolist()
    return [
        formulas.pair(block, (column,)) if column < lines else Pair(block)
        for block, column in enumerate(columns[:blocks])
    ]


def _of_pairs(name: str, pairs: Sequence[Pair], formulas: Formulas, pool: Pool) -> Candidate:
    total = sum(pair.distance for pair in pairs)
    paired = [pair for pair in pairs if pair.lines]
    used = (formulas.sources[line] for pair in paired for line in pair.lines)
    key = Key(
        total=total,
        share=_share(sum(pair.edits for pair in paired), sum(pair.longest for pair in paired), len(pairs)),
        unused=pool.unused(used),
        mean=total / len(pairs) if pairs else math.inf,
        rewritten=-pool.rewritten,
        missing=len(pairs) - len(paired),
    )
    return Candidate(
        pool.prefix + name, key, functools.cache(lambda: list(rows_of(pairs, formulas, pool.rules.bare_formula)))
    )


def _of_samples(name: str, rows: Sequence[MatchedSample], pool: Pool) -> Candidate:
    """Their indices are those of another list, and are looked up in that of the formulas all the same, as upstream."""
    total = sum(row.edit for row in rows)
    paired = [row for row in rows if row.pred_idx]
    ordered = in_order(pool.sources)
    used = (ordered[index] for row in paired for index in row.pred_idx if index < len(ordered))
    key = Key(
        total=total,
        share=_share(
            sum(levenshtein_distance(row.norm_pred, row.norm_gt) for row in paired),
            sum(max(len(row.norm_pred), len(row.norm_gt)) for row in paired),
            len(rows),
        ),
        unused=pool.unused(used),
        mean=total / len(rows) if rows else math.inf,
        rewritten=-pool.rewritten,
        missing=len(rows) - len(paired),
    )
    return Candidate(name, key, lambda: rows)


def _share(edits: int, longest: int, rows: int) -> float:
    """Edits of all rows over their lengths."""
    if not rows:
        return math.inf
    return edits / longest if longest else 0.0


#: Of a formula with more lines, or where there are more ways than this, no way is tried.
_MOST_LINES: Final = 8
_MOST_WAYS: Final = 128

Way: TypeAlias = tuple[PredictedItem, ...]


def partitions(sources: Sequence[PredictedItem], rules: Rules) -> Iterator[list[PredictedItem]]:
    """All combinations of the ways to part the items, the first item slowest; none where nothing can be parted."""
    lines = [rules.split_items([source]) for source in in_order(sources)]
    counts = [2 ** (len(parts) - 1) if len(parts) <= _MOST_LINES else 1 for parts in lines]
    if not 1 < math.prod(counts) <= _MOST_WAYS:
        return
    ways = [
        list(_ways(parts, rules)) if count > 1 else [(source,)]
        for source, parts, count in zip(in_order(sources), lines, counts, strict=True)
    ]
    for combination in itertools.product(*ways):
        yield [source for way in combination for source in way]


def _ways(lines: Sequence[PredictedItem], rules: Rules) -> Iterator[Way]:
    """The lines in groups of neighbours, from all in one group to all apart; bit i of the mask cuts behind line i."""
    for mask in range(2 ** (len(lines) - 1)):
        cuts = [0, *(place for place in range(1, len(lines)) if mask >> (place - 1) & 1), len(lines)]
        yield tuple(_group(lines[start:stop], rules) for start, stop in itertools.pairwise(cuts))


def _group(lines: Sequence[PredictedItem], rules: Rules) -> PredictedItem:
    first, last = lines[0].item, lines[-1].item
    if len(lines) == 1:
        return lines[0]
    content = joined([line.item.content for line in lines], rules.bare_formula)
    if not content.startswith((r"\[", "$$")):
        content = rf"\[{content}\]"
    return PredictedItem(lines[0].index, replace(first, content=content, end=last.end, fine_category=FORMULA))
