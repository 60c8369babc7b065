"""Compute the exact distance between two table trees, by the savings of the best mapping, and that mapping.

Source: Pawlik and Augsten, Information Systems 56 (2016) define the distance that TEDS uses; the optimum is found
here by leaving out what cannot matter (equal subtrees at both ends, pairs that no best mapping holds) and a row-wise
dynamic programme on the rest (tree_programme.py). If several mappings are equally good, one of them is given.

Bounds: `achievable_savings` (tree_greedy.py) makes one good mapping quickly. A pair of nodes whose most optimistic
mapping saves less is then left out: with i mapped to j, nodes before, inside and behind i can only be mapped to
those before, inside and behind j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loupe.metrics.teds.table_tree import TableTooLargeError, TableTree
from loupe.metrics.teds.tree_forest import (
    MAX_CELL_PAIRS,
    Flags,
    Floats,
    Forest,
    Ints,
    Windows,
    cut_forests,
    weigh_leaves,
)
from loupe.metrics.teds.tree_greedy import achievable_savings
from loupe.metrics.teds.tree_programme import (
    Programme,
    align_rows,
    open_programme,
    run,
    weigh_other_heads,
    weigh_rows,
    weigh_sections_of_one_row,
)
from loupe.metrics.teds.tree_whole_rows import savings_of_whole_rows

Pair = tuple[int, int]

_SMALL: Final = 4_000
"""Up to so many pairs of nodes, whole rows are tried without arrays first."""

_COMPARE_ALL: Final = 20_000
"""Up to so many pairs of nodes, comparing them all is faster than finding out which ones cannot matter."""


def tree_savings(first: TableTree, second: TableTree, texts: list[str], *, structure_only: bool) -> float:
    """Compute what the best mapping saves; the distance of the trees is their number of nodes less this.

    `texts` are those of the vocabulary that both trees are made with. Raises TableTooLargeError.
    """
    if len(first) > len(second):
        first, second = second, first  # the programme takes a step per node of the first
    if len(first) * len(second) <= _SMALL:
        savings = savings_of_whole_rows(first, second, texts, structure_only=structure_only)
        if savings is not None:
            return savings
    peeled = peel(first, second, structure_only=structure_only)
    if not peeled.parts[0] or not peeled.parts[1]:
        return peeled.savings
    forests = cut_forests((first, second), peeled.parts, structure_only=structure_only)
    return peeled.savings + forest_savings(*forests, None if structure_only else texts)


def forest_savings(first: Forest, second: Forest, texts: list[str] | None) -> float:
    """Compute what the best mapping of two forests saves; without `texts`, what is written in cells does not count."""
    programme, limits, savings = weigh(first, second, texts)
    rows = align_rows(programme)
    if rows.is_best:
        return rows.savings
    finish(programme, limits, max(savings, rows.savings))
    return run(programme, range(len(first)), range(len(second)))


def weigh(first: Forest, second: Forest, texts: list[str] | None) -> tuple[Programme, Limits, float]:
    """A programme with the weights of leaves and rows; what nodes can save, and what some mapping surely saves."""
    if len(first) * len(second) <= _COMPARE_ALL:
        limits = Limits(np.arange(0.0, 2 * len(first) + 1, 2), np.arange(0.0, 2 * len(second) + 1, 2))
        candidates, windows, savings = None, Windows([0], [0], [len(second)]), 0.0
    else:
        limits = savings_limits(first, second, texts)
        savings = achievable_savings(first, second, texts)
        candidates = head_candidates(first, second, limits, savings)
        windows = leaf_windows(first, second, limits, candidates, savings)
    programme = open_programme(first, second, weigh_leaves(first, second, windows, texts), candidates)
    weigh_rows(programme)
    return programme, limits, savings


def finish(programme: Programme, limits: Limits, savings: float) -> None:
    """Find the weights that are still missing, as far as a mapping with these savings, or more, can need them."""
    weigh_sections_of_one_row(programme)
    if programme.pending.any():
        programme.pending &= head_candidates(programme.first, programme.second, limits, savings)
        weigh_other_heads(programme)


@dataclass(frozen=True, slots=True)
class Peeled:
    """The rest of two trees when the parts that a best mapping surely maps are taken away."""

    parts: tuple[range, range]
    matched: list[tuple[range, range]]  # nodes mapped one to one, without any cost

    @property
    def savings(self) -> float:
        """The savings of the matched nodes."""
        return 2.0 * sum(len(nodes) for nodes, _ in self.matched)


def peel(first: TableTree, second: TableTree, *, structure_only: bool) -> Peeled:
    """Map equal roots, and equal subtrees at the front and at the end of what is below them, as long as there are any.

    Equal roots: a mapping that leaves one or both of them out can be changed to hold the pair and costs no more.
    Equal first subtrees T of T+F and T+G: let M be a mapping of the two. Drop T from both sides of it; a node x of F
    that was mapped into T is now deleted. M paid for that: x -> t in T means that t in the other copy of T, which is
    left of x, goes to a node left of t, and so on, strictly to the left, until a node of T is deleted in M, a
    different one for each such x. So distance(T+F, T+G) = distance(F, G); no triangle inequality is needed (the cell
    distance does not fulfil it).
    """
    keys = (first.shapes, second.shapes) if structure_only else (first.subtrees, second.subtrees)
    parts = range(len(first)), range(len(second))
    matched: list[tuple[range, range]] = []
    while parts[0] and parts[1]:
        roots_1, roots_2 = _roots(first, parts[0]), _roots(second, parts[1])
        front = _common(roots_1, roots_2, keys)
        back = _common(roots_1[front:][::-1], roots_2[front:][::-1], keys)
        inner = _inner(first, parts[0], roots_1, front, back), _inner(second, parts[1], roots_2, front, back)
        matched.append((range(inner[0].stop, parts[0].stop), range(inner[1].stop, parts[1].stop)))
        matched.append((range(parts[0].start, inner[0].start), range(parts[1].start, inner[1].start)))
        parts = inner
        if len(roots_1) - front - back != 1 or len(roots_2) - front - back != 1:
            break
        tops = inner[0].stop - 1, inner[1].stop - 1
        childless = len(inner[0]) == 1 and len(inner[1]) == 1
        if first.labels[tops[0]] != second.labels[tops[1]] or childless:
            break
        matched.append((range(tops[0], tops[0] + 1), range(tops[1], tops[1] + 1)))
        parts = inner[0][:-1], inner[1][:-1]
    return Peeled(parts, matched)


def _roots(tree: TableTree, part: range) -> list[int]:
    """The roots of the subtrees in a range, in document order."""
    roots = []
    node = part.stop - 1
    while node >= part.start:
        roots.append(node)
        node = tree.first[node] - 1
    return roots


def _common(roots_1: list[int], roots_2: list[int], keys: tuple[list[int], list[int]]) -> int:
    """Count the subtrees that are equal from the start."""
    count = 0
    for root_1, root_2 in zip(roots_1, roots_2, strict=False):
        if keys[0][root_1] != keys[1][root_2]:
            break
        count += 1
    return count


def _inner(tree: TableTree, part: range, roots: list[int], front: int, back: int) -> range:
    """The range without that many subtrees in front and at the end (of the document)."""
    start = roots[-back] + 1 if back else part.start
    stop = tree.first[roots[front - 1]] if front else part.stop
    return range(start, stop)


def best_mapping(first: TableTree, second: TableTree, texts: list[str], *, structure_only: bool = False) -> list[Pair]:
    """The nodes that are mapped to each other, by their numbers; all others are deleted or inserted.

    Needs more memory than the savings alone; raises TableTooLargeError.
    """
    if len(first) > len(second):
        return sorted(pair[::-1] for pair in best_mapping(second, first, texts, structure_only=structure_only))
    peeled = peel(first, second, structure_only=structure_only)
    pairs = [pair for nodes_1, nodes_2 in peeled.matched for pair in zip(nodes_1, nodes_2, strict=True)]
    part_1, part_2 = peeled.parts
    if part_1 and part_2:
        if len(part_1) * len(part_2) > MAX_CELL_PAIRS:
            raise TableTooLargeError(f"{len(part_1):,} against {len(part_2):,} nodes are too many to be mapped")
        forests = cut_forests((first, second), peeled.parts, structure_only=structure_only)
        programme, limits, savings = weigh(*forests, None if structure_only else texts)
        finish(programme, limits, max(savings, align_rows(programme).savings))
        pairs += [(part_1.start + node_1, part_2.start + node_2) for node_1, node_2 in _way_back(programme)]
    return sorted(pairs)


def _way_back(programme: Programme) -> list[Pair]:
    pairs: list[Pair] = []
    waiting = [(range(len(programme.first)), range(len(programme.second)))]
    while waiting:
        nodes_1, nodes_2 = waiting.pop()
        rows: list[Floats] = []
        run(programme, nodes_1, nodes_2, rows)
        i, j = len(nodes_1), len(nodes_2)
        while i and j:
            if rows[i][j] == rows[i - 1][j]:
                i -= 1
            elif rows[i][j] == rows[i][j - 1]:
                j -= 1
            else:
                node_1, node_2 = nodes_1[i - 1], nodes_2[j - 1]
                start_1, start_2 = int(programme.first.first[node_1]), int(programme.second.first[node_2])
                pairs.append((node_1, node_2))
                if start_1 < node_1 and start_2 < node_2:
                    waiting.append((range(start_1, node_1), range(start_2, node_2)))
                i, j = start_1 - nodes_1.start, start_2 - nodes_2.start
    return pairs


_BLOCK: Final = 48  # leaves that are compared in one call
_ROUNDING: Final = 1e-6  # sums of up to some 10,000 savings are exact to about 1e-11
"""So that a best mapping itself is never left out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that the nodes before each node save: `before_1[i]` is that of the first forest's nodes 0 to i - 1."""

    before_1: Floats
    before_2: Floats


def savings_limits(first: Forest, second: Forest, texts: list[str] | None) -> Limits:
    """Sum up what each node can save at most, whatever it is mapped to; without `texts`, only labels count."""
    if texts is None:
        return Limits(_summed(_label_limits(first, second)), _summed(_label_limits(second, first)))
    lengths = np.array([len(text) for text in texts], np.float64)
    return Limits(_summed(_text_limits(first, second, lengths)), _summed(_text_limits(second, first, lengths)))


def _summed(limits: Floats) -> Floats:
    summed = np.zeros(len(limits) + 1, np.float64)
    limits.cumsum(out=summed[1:])
    return summed


def _label_limits(forest: Forest, other: Forest) -> Floats:
    known = np.zeros(1 + max(forest.labels.max(), other.labels.max()), np.bool_)
    known[other.labels] = True
    return 1.0 + known[forest.labels]


def _text_limits(forest: Forest, other: Forest, lengths: Floats) -> Floats:
    """Texts of m and n characters that differ have a distance of 1/(m + 1) at least: 1/m for n <= m, else (n - m)/n."""
    known = np.zeros(len(lengths), np.bool_)
    known[other.contents[other.leaves]] = True
    contents = forest.contents
    limits = np.where(known[contents], 2.0, 2.0 - 1.0 / (1.0 + lengths[contents]))
    limits[forest.heads] = 2.0  # they hold no text, even if they are leaves
    return np.minimum(limits, _label_limits(forest, other))


def head_candidates(first: Forest, second: Forest, limits: Limits, savings: float) -> Flags:
    """Mark the pairs of heads that a mapping with these savings, or more, may hold."""
    before_1, before_2 = limits.before_1, limits.before_2
    start_1, start_2 = before_1[first.first[first.heads]][:, None], before_2[second.first[second.heads]]
    stop_1, stop_2 = before_1[first.heads + 1][:, None], before_2[second.heads + 1]
    optimistic = np.minimum(start_1, start_2)
    optimistic += np.minimum(before_1[first.heads][:, None] - start_1, before_2[second.heads] - start_2)
    optimistic += np.minimum(before_1[-1] - stop_1, before_2[-1] - stop_2)
    optimistic += 1.0 + (first.labels[first.heads][:, None] == second.labels[second.heads])
    return optimistic >= savings - _ROUNDING


def leaf_windows(first: Forest, second: Forest, limits: Limits, candidates: Flags, savings: float) -> Windows:
    """For blocks of leaves, the nodes that they may be mapped to, and the children of the rows that are candidates."""
    before_1, before_2 = limits.before_1, limits.before_2
    needed = savings - _ROUNDING
    # Inside and before j at least what the nodes behind i leave to be saved, and the same the other way round.
    low = np.searchsorted(before_2, needed - (before_1[-1] - before_1[1:])) - 1
    high = np.searchsorted(before_2, before_2[-1] - needed + before_1[1:], side="right") - 1
    low, high = np.maximum(low, 0), np.minimum(high, len(second))
    rows = candidates[first.is_row][:, second.is_row]
    if rows.any():
        some = rows.any(axis=1)
        # The last child of a row gets the lowest window, the first one the highest; the others take them over.
        last, start = first.rows[some] - 1, second.first[second.rows[rows[some].argmax(axis=1)]]
        low[last] = np.minimum(low[last], start)
        children, end = first.first[first.rows[some]], second.rows[::-1][rows[some][:, ::-1].argmax(axis=1)]
        high[children] = np.maximum(high[children], end + 1)
    low = np.minimum.accumulate(low[::-1])[::-1]
    high = np.maximum(np.maximum.accumulate(high), low)
    starts = _block_starts(first)
    ends = np.append(starts[1:], len(first)) - 1
    return Windows(starts.tolist(), low[starts].tolist(), high[ends].tolist())


def _block_starts(forest: Forest) -> Ints:
    """Cut the forest so that each block holds about the same number of leaves."""
    starts = forest.leaves[::_BLOCK].copy()
    if not len(starts) or starts[0] != 0:
        return np.concatenate(([0], starts))
    return starts
