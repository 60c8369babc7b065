"""A good mapping of two forests of table rows, quickly: rows that share cells found nowhere else go together."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from operator import itemgetter

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from loupe.metrics.teds.tree_forest import Floats, Forest, Ints

Pair = tuple[int, int]


def achievable_savings(first: Forest, second: Forest, texts: list[str] | None) -> float:
    """Compute what a mapping of rows in order, and of cells by their place, saves. Never more than the best mapping."""
    rows = align_rows(first, second)
    if not rows:
        return 0.0
    nodes_1: list[int] = []
    nodes_2: list[int] = []
    lengths: list[tuple[int, bool]] = []
    for row_1, row_2 in rows:
        start_1, start_2 = int(first.first[row_1]), int(second.first[row_2])
        length = min(row_1 - start_1, row_2 - start_2)
        lengths.append((length, row_1 - start_1 == row_2 - start_2))
        nodes_1 += range(start_1, start_1 + length)
        nodes_2 += range(start_2, start_2 + length)
        if not lengths[-1][1]:
            nodes_1 += range(row_1 - length, row_1)
            nodes_2 += range(row_2 - length, row_2)
    weights = _pair_savings(first, second, np.array(nodes_1), np.array(nodes_2), texts)
    total = sum(2.0 if first.labels[row_1] == second.labels[row_2] else 1.0 for row_1, row_2 in rows)
    place = 0
    for length, equal in lengths:
        middle = place + length
        if equal:
            total += float(weights[place:middle].sum())
        else:
            total += _best_split(weights[place:middle], weights[middle : middle + length])
        place = middle if equal else middle + length
    return total + 2.0 * _parents_in_step(first, second, rows)


def _best_split(from_start: Floats, from_end: Floats) -> float:
    """Savings of two rows of unequal length, with one gap at the best place."""
    before = np.concatenate(([0.0], np.cumsum(from_start)))
    behind = np.concatenate(([0.0], np.cumsum(from_end)))
    return float((before + behind[-1] - behind).max())


def _pair_savings(first: Forest, second: Forest, nodes_1: Ints, nodes_2: Ints, texts: list[str] | None) -> Floats:
    savings = np.full(len(nodes_1), 2.0)
    if texts is not None:
        texts_1 = [texts[content] for content in first.contents[nodes_1].tolist()]
        texts_2 = [texts[content] for content in second.contents[nodes_2].tolist()]
        savings -= cpdist(texts_1, texts_2, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    savings[first.labels[nodes_1] != second.labels[nodes_2]] = 1.0
    return savings


def align_rows(first: Forest, second: Forest) -> list[Pair]:
    """Pairs of rows, in order: by the cells that occur once in each forest, between them one after the other."""
    rows_1, rows_2 = first.rows.tolist(), second.rows.tolist()
    anchors = [(-1, -1), *_anchor_rows(first, second), (len(first), len(second))]
    pairs: list[Pair] = []
    for (before_1, before_2), (after_1, after_2) in pairwise(anchors):
        gap_1 = rows_1[bisect_left(rows_1, before_1 + 1) : bisect_left(rows_1, after_1)]
        gap_2 = rows_2[bisect_left(rows_2, before_2 + 1) : bisect_left(rows_2, after_2)]
        pairs += zip(gap_1, gap_2, strict=False)
        pairs.append((after_1, after_2))
    return pairs[:-1]


def _anchor_rows(first: Forest, second: Forest) -> list[Pair]:
    """Rows that share cells which occur once in each forest: for each the one that it shares most with, in order."""
    leaves_1, leaves_2 = _unique_cells(first, second)
    row_of_1, row_of_2 = _row_of_leaf(first), _row_of_leaf(second)
    votes = Counter(zip(row_of_1[leaves_1].tolist(), row_of_2[leaves_2].tolist(), strict=True))
    best: dict[int, Pair] = {}
    for pair, _ in sorted(votes.items(), key=itemgetter(1)):
        if min(pair) >= 0:
            best[pair[0]] = pair
    return _rising(sorted(best.values()))


def _row_of_leaf(forest: Forest) -> Ints:
    """The row above each node; -1 where there is none."""
    rows = np.full(len(forest), -1)
    for row, start in zip(forest.rows.tolist(), forest.first[forest.rows].tolist(), strict=True):
        rows[start:row] = row
    return rows


def _unique_cells(first: Forest, second: Forest) -> tuple[Ints, Ints]:
    """The leaves whose contents occur once in each forest."""
    contents_1, contents_2 = first.contents[first.leaves], second.contents[second.leaves]
    size = 1 + max(contents_1.max(), contents_2.max())
    unique = np.flatnonzero(
        (np.bincount(contents_1, minlength=size) == 1) & (np.bincount(contents_2, minlength=size) == 1)
    )
    place_1, place_2 = np.zeros(size, np.intp), np.zeros(size, np.intp)
    place_1[contents_1], place_2[contents_2] = first.leaves, second.leaves
    return place_1[unique], place_2[unique]


def _rising(pairs: list[Pair]) -> list[Pair]:
    """The longest selection in which both sides rise, of pairs whose first sides do (patience sorting)."""
    ends: list[int] = []  # smallest last value of a selection of each length
    tops: list[int] = []  # and the pair that it is of
    previous: list[int] = []
    for index, (_, value) in enumerate(pairs):
        length = bisect_left(ends, value)
        previous.append(tops[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        tops[length : length + 1] = [index]
    chosen: list[Pair] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = previous[index]
    return chosen[::-1]


def _parents_in_step(first: Forest, second: Forest, rows: list[Pair]) -> int:
    """Count the parents of rows (table sections) that can be mapped too, since just their rows are mapped to each
    other.
    """
    section_1, section_2 = _sections(first), _sections(second)
    partners = Counter((section_1.get(row_1, -1), section_2.get(row_2, -1)) for row_1, row_2 in rows)
    count_1, count_2 = Counter(pair[0] for pair in partners), Counter(pair[1] for pair in partners)
    return sum(
        count_1[one] == 1 and count_2[two] == 1 and bool(first.labels[one] == second.labels[two])
        for one, two in partners
        if one >= 0 and two >= 0
    )


def _sections(forest: Forest) -> dict[int, int]:
    """The parent of each row, for parents below which stand rows and leaves only."""
    inner = forest.heads[forest.inner]
    is_row = forest.is_row[forest.inner]
    rows_before = np.concatenate(([0], np.cumsum(is_row)))
    places = np.arange(len(inner))
    lowest = np.searchsorted(inner, forest.first[inner])  # the first inner node below
    of_height_two = ~is_row & (rows_before[places] - rows_before[lowest] == places - lowest)
    nodes = inner.tolist()
    return {nodes[row]: nodes[top] for top in np.flatnonzero(of_height_two) for row in range(lowest[top], top)}
