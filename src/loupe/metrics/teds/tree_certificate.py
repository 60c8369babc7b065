"""A short cut: when rows can be aligned whole, the programme over single cells finds nothing better.

Let the forests be rows, or sections (thead, tbody) of rows. In a mapping, cells of row a can stand opposite cells of
row b without a and b being mapped to each other only if both rows are mapped to no row (*stray*). So a mapping saves at
most

    weights of mapped pairs of rows + what cells of stray rows save + 1 for each section on either side,

and cells of stray rows save at most what each of them, on one side, saves with the partner that suits it best. The best
alignment of rows in which rows without a partner earn that much is a bound for all mappings. If an alignment of rows
that keeps to the sections reaches it, that one is a best mapping.
"""

from __future__ import annotations

from operator import eq
from typing import Final, NamedTuple

import numpy as np

from loupe.metrics.teds.tree_forest import Floats, Forest, Ints
from loupe.metrics.teds.tree_programme import Programme

_ROUNDING: Final = 1e-10


class RowAlignment(NamedTuple):
    """What the best alignment of whole rows saves, and whether no mapping saves more."""

    savings: float
    is_best: bool


def align_rows(programme: Programme) -> RowAlignment:
    """Align rows whole, once their weights are known: within sections if the forests are made of them, else freely."""
    first, second = programme.first, programme.second
    tops = first.heads[~first.is_row], second.heads[~second.is_row]
    weights = programme.heads[first.is_row][:, second.is_row]
    sections_1, sections_2 = _section_of_rows(first, tops[0]), _section_of_rows(second, tops[1])
    if sections_1 is None or sections_2 is None or len(tops[0]) != len(tops[1]):
        return RowAlignment(align(weights), False)
    within = weights
    if len(tops[0]) > 1:
        within = weights.copy()
        within[sections_1[:, None] != sections_2] = -np.inf
    labels_1, labels_2 = first.labels[tops[0]].tolist(), second.labels[tops[1]].tolist()
    equal = sum(map(eq, labels_1, labels_2))
    reached = align(within) + len(tops[0]) + equal
    if _rows_have_label(first, labels_2) or _rows_have_label(second, labels_1):
        return RowAlignment(reached, False)
    stray_1, stray_2 = _best_of_rows(programme)
    # Either side will do; the one that has less to save gives the lower bound.
    if stray_1.sum() + len(stray_1) < stray_2.sum() + len(stray_2):
        weights, earned = weights - stray_1[:, None], float(stray_1.sum())
    else:
        weights, earned = weights - stray_2, float(stray_2.sum())
    bound = align(weights) + earned + 2 * len(tops[0])
    return RowAlignment(reached, bound <= reached + _ROUNDING)


def align(weights: Floats) -> float:
    """The largest sum of weights of pairs that are in order on both sides."""
    table = np.zeros(weights.shape[1] + 1)
    old, new = table[:-1], table[1:]
    scratch = np.empty(weights.shape[1])
    bits, new_bits = scratch.view(np.int64), new.view(np.int64)  # as in tree_programme.py
    for row in weights:
        np.add(old, row, out=scratch)
        np.maximum(scratch, new, out=scratch)
        np.maximum.accumulate(bits, out=new_bits)
    return float(table[-1])


def _section_of_rows(forest: Forest, tops: Ints) -> Ints | None:
    """The number of the section of each row; None unless the forest is made of rows, or of sections of rows, only."""
    if not forest.inner.all():
        return None
    rows = forest.rows
    children = int((rows - forest.first[rows]).sum())
    if children + len(rows) + len(tops) != len(forest):
        return None
    if not len(tops):
        return np.zeros(len(rows), np.intp)
    ends, starts = tops.tolist(), forest.first[tops].tolist()
    if ends[-1] != len(forest) - 1 or starts != [0, *(end + 1 for end in ends[:-1])]:
        return None
    return np.searchsorted(tops, rows)


def _rows_have_label(forest: Forest, labels: list[int]) -> bool:
    """Whether a row has the label of one of the other's sections, and so could be mapped to it at no cost."""
    return bool(labels) and not set(labels).isdisjoint(forest.labels[forest.rows].tolist())


def _best_of_rows(programme: Programme) -> tuple[Floats, Floats]:
    """What the cells of each row save with those partners that suit them best, for both forests."""
    leaves = programme.leaves
    return _row_sums(programme.first, leaves.best_1), _row_sums(programme.second, leaves.best_2)


def _row_sums(forest: Forest, values: Floats) -> Floats:
    before = np.concatenate(([0.0], values.cumsum()))
    sums: Floats = before[forest.rows] - before[forest.first[forest.rows]]
    return sums
