"""A good mapping of two forests of table rows, quickly: rows that share cells found nowhere else go together."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise

import numpy as np

from loupe.metrics.tree_forest import Floats, Forest

Pair = tuple[int, int]


def achievable_savings(first: Forest, second: Forest, *, texts: bool) -> float:
    """What a mapping of rows in order, and of cells by their place, saves. Never more than the best mapping."""
    rows = align_rows(first, second)
    if not rows:
        return 0.0
    pairs: list[Pair] = []
    for row_1, row_2 in rows:
        start_1, start_2 = int(first.first[row_1]), int(second.first[row_2])
        length = min(row_1 - start_1, row_2 - start_2)
        pairs += zip(range(start_1, start_1 + length), range(start_2, start_2 + length), strict=True)
        if row_1 - start_1 != row_2 - start_2:
            pairs += zip(range(row_1 - length, row_1), range(row_2 - length, row_2), strict=True)
    weights = _pair_savings(first, second, pairs, texts)
    total = 0.0
    place = 0
    for row_1, row_2 in rows:
        start_1, start_2 = int(first.first[row_1]), int(second.first[row_2])
        length = min(row_1 - start_1, row_2 - start_2)
        total += 2.0 if first.labels[row_1] == second.labels[row_2] else 1.0
        if row_1 - start_1 == row_2 - start_2:
            total += float(weights[place : place + length].sum())
            place += length
        else:
            total += _best_split(weights[place : place + length], weights[place + length : place + 2 * length])
            place += 2 * length
    return total + 2.0 * _parents_in_step(first, second, rows)


def _best_split(from_start: Floats, from_end: Floats) -> float:
    """Savings of two rows of unequal length, with one gap at the best place."""
    before = np.concatenate(([0.0], np.cumsum(from_start)))
    behind = np.concatenate(([0.0], np.cumsum(from_end)))
    return float((before + behind[-1] - behind).max())


def _pair_savings(first: Forest, second: Forest, pairs: list[Pair], texts: bool) -> Floats:
    nodes_1, nodes_2 = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    savings = np.full(len(pairs), 2.0)
    if texts:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cpdist

        texts_1, texts_2 = [first.texts[node] for node in nodes_1], [second.texts[node] for node in nodes_2]
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
    """Rows that share a unique cell; where these disagree, those that share most."""
    votes: Counter[Pair] = Counter()
    row_of_1, row_of_2 = _row_of_leaf(first), _row_of_leaf(second)
    for leaf_1, leaf_2 in _rising(_unique_cells(first, second)):
        votes[row_of_1[leaf_1], row_of_2[leaf_2]] += 1
    chain: list[Pair] = []
    for pair in sorted(pair for pair in votes if min(pair) >= 0):
        while chain and (chain[-1][0] >= pair[0] or chain[-1][1] >= pair[1]) and votes[pair] > votes[chain[-1]]:
            chain.pop()
        if not chain or (chain[-1][0] < pair[0] and chain[-1][1] < pair[1]):
            chain.append(pair)
    return chain


def _row_of_leaf(forest: Forest) -> list[int]:
    """The row above each node; -1 where there is none."""
    rows = [-1] * len(forest)
    for row in forest.rows.tolist():
        start = int(forest.first[row])
        rows[start:row] = [row] * (row - start)
    return rows


def _unique_cells(first: Forest, second: Forest) -> list[Pair]:
    """Equal leaves that occur once in each forest."""
    keys_1, keys_2 = first.subtrees[first.leaves].tolist(), second.subtrees[second.leaves].tolist()
    count_1, count_2 = Counter(keys_1), Counter(keys_2)
    places = {key: leaf for key, leaf in zip(keys_2, second.leaves.tolist(), strict=True) if count_2[key] == 1}
    leaves = zip(keys_1, first.leaves.tolist(), strict=True)
    return [(leaf, places[key]) for key, leaf in leaves if count_1[key] == 1 and key in places]


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
    """How many parents of rows (table sections) can be mapped too, since just their rows are mapped to each other."""
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
    is_row = forest.height_one[forest.inner]
    rows_before = np.concatenate(([0], np.cumsum(is_row)))
    places = np.arange(len(inner))
    lowest = np.searchsorted(inner, forest.first[inner])  # the first inner node below
    of_height_two = ~is_row & (rows_before[places] - rows_before[lowest] == places - lowest)
    nodes = inner.tolist()
    return {nodes[row]: nodes[top] for top in np.flatnonzero(of_height_two) for row in range(lowest[top], top)}
