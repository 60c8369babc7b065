"""Exact distance between two table trees, by the savings of the best mapping.

Source: Pawlik and Augsten, Information Systems 56 (2016) define the distance that TEDS uses; the optimum is found
here by leaving out what cannot matter (equal subtrees at both ends, pairs that no best mapping holds; tree_bounds.py)
and a row-wise dynamic programme on the rest (tree_programme.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loupe.metrics.teds.table_tree import TableTree
from loupe.metrics.teds.tree_bounds import Limits, head_candidates, leaf_windows, savings_limits
from loupe.metrics.teds.tree_certificate import align_rows
from loupe.metrics.teds.tree_forest import Forest, Windows, cut_forests, weigh_leaves
from loupe.metrics.teds.tree_greedy import achievable_savings
from loupe.metrics.teds.tree_programme import Programme, open_programme, run, weigh_other_heads
from loupe.metrics.teds.tree_rows import weigh_rows, weigh_sections_of_one_row
from loupe.metrics.teds.tree_whole_rows import savings_of_whole_rows

Pair = tuple[int, int]

_SMALL: Final = 4_000
"""Up to so many pairs of nodes, whole rows are tried without arrays first."""

_COMPARE_ALL: Final = 20_000
"""Up to so many pairs of nodes, comparing them all is faster than finding out which ones cannot matter."""


def tree_savings(first: TableTree, second: TableTree, texts: list[str], *, structure_only: bool) -> float:
    """What the best mapping saves; the distance of the trees is their number of nodes less this.

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
    """What the best mapping of two forests saves; without `texts`, what is written in cells does not count."""
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
    """What is left of two trees when the parts that a best mapping surely maps are taken away."""

    parts: tuple[range, range]
    matched: list[tuple[range, range]]  # nodes mapped one to one, without any cost

    @property
    def savings(self) -> float:
        """What the matched nodes save."""
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
    """How many subtrees are equal from the start."""
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
