"""The weights of pairs of table rows: many alignments of leaves at once.

Part of the dynamic programme of tree_programme.py. Rows here are all inner nodes whose children are leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from loupe.metrics.teds.tree_forest import Floats, Forest, Ints
from loupe.metrics.teds.tree_programme import Programme

_SLAB: Final = 100_000  # pairs of leaves that are aligned at once: what fits in the cache
_LONG: Final = 400


def weigh_rows(programme: Programme) -> None:
    """Find the weights of all pending pairs of rows together."""
    first, second = programme.first, programme.second
    pairs = programme.pending & first.is_row[:, None] & second.is_row
    ranks_1, ranks_2 = np.nonzero(pairs)
    if not len(ranks_1):
        return
    chosen = places = np.arange(len(ranks_1))
    if len(set(first.keys)) * len(set(second.keys)) < len(first.keys) * len(second.keys):
        chosen, places = _distinct(np.array(first.keys), np.array(second.keys), ranks_1, ranks_2)
    rows_1, rows_2 = first.heads[ranks_1[chosen]], second.heads[ranks_2[chosen]]
    savings = np.empty(len(chosen))
    for group in _of_like_size(rows_1 - first.first[rows_1], rows_2 - second.first[rows_2]):
        savings[group] = _align_rows(programme, rows_1[group], rows_2[group])
    programme.heads[pairs] = 1.0 + programme.equal[pairs] + savings[places]
    programme.pending &= ~pairs


def _distinct(keys_1: Ints, keys_2: Ints, ranks_1: Ints, ranks_2: Ints) -> tuple[Ints, Ints]:
    """One pair of ranks out of all that have the same two keys, and for each pair, which one stands for it."""
    _, numbers_1 = np.unique(keys_1, return_inverse=True)
    different_2, numbers_2 = np.unique(keys_2, return_inverse=True)
    pairs = numbers_1[ranks_1] * len(different_2) + numbers_2[ranks_2]
    chosen = np.full(len(keys_1) * len(different_2), -1)
    chosen[pairs] = np.arange(len(pairs))
    found = np.flatnonzero(chosen >= 0)
    places = np.empty_like(chosen)
    places[found] = np.arange(len(found))
    return chosen[found], places[pairs]


def _of_like_size(lengths_1: Ints, lengths_2: Ints) -> Iterator[Ints]:
    """Groups of pairs whose second rows are padded to twice their length at most; in each the first get no longer."""
    sizes = np.ceil(np.log2(lengths_2))
    order = np.lexsort((-lengths_1, sizes))
    borders = (np.flatnonzero(np.diff(sizes[order])) + 1).tolist()
    for start, stop in pairwise([0, *borders, len(order)]):
        slab = max(1, _SLAB // int(lengths_2[order[start:stop]].max()))
        for first in range(start, stop, slab):
            yield order[first : min(first + slab, stop)]


def _align_rows(programme: Programme, rows_1: Ints, rows_2: Ints) -> Floats:
    """Best savings of the children of each pair; the first rows get no longer along the arrays."""
    start_1, start_2 = programme.first.first[rows_1], programme.second.first[rows_2]
    lengths = rows_1 - start_1
    width = int((rows_2 - start_2).max())
    # Behind the last child of a row stands the row itself, whose weight is minus infinity.
    columns = np.minimum(start_2 + np.arange(width)[:, None], rows_2)
    values = programme.leaves.values
    steps = np.arange(int(lengths[0]))
    offsets = programme.leaves.offsets[np.minimum(start_1 + steps[:, None], rows_1)]
    counts = len(lengths) - np.searchsorted(lengths[::-1], steps, side="right")
    table = np.zeros((width + 1, len(rows_1)))
    for count, offset in zip(counts.tolist(), offsets, strict=True):
        old, new = table[:-1, :count], table[1:, :count]
        savings = values.take(columns[:, :count] + offset[:count], mode="clip")
        np.add(savings, old, out=savings)
        np.maximum(savings, new, out=savings)
        _running_maximum(savings, new)
    best: Floats = table[-1]
    return best


def _running_maximum(values: Floats, out: Floats) -> None:
    """The running maximum along the first axis, of what is not negative; over long rows a loop is faster."""
    if values.shape[1] < _LONG:
        np.maximum.accumulate(values.view(np.int64), out=out.view(np.int64))
        return
    out[0] = values[0]
    for row, (before, here) in zip(values[1:], pairwise(out), strict=True):
        np.maximum(before, row, out=here)


def weigh_sections_of_one_row(programme: Programme) -> None:
    """Find the weights of sections that hold one row, such as most thead, from that of their row.

    Two such sections whose rows have equal labels: a best mapping of their contents maps these rows to each other
    (equal roots; tree_distance.py). A row against such a section: where it has the label of the section's row, and not
    that of the section, it is better mapped to that row, for whatever is mapped below the section is mapped below its
    row.
    """
    first, second = programme.first, programme.second
    ones_1, ones_2 = _over_one_row(first), _over_one_row(second)
    equal, pending = programme.equal, programme.pending
    if len(ones_1) and len(ones_2):
        sections, rows = (ones_1[:, None], ones_2), (ones_1[:, None] - 1, ones_2 - 1)
        known = pending[sections] & equal[rows]
        weights = programme.heads[sections]
        weights[known] = (1.0 + equal[sections] + programme.heads[rows])[known]
        programme.heads[sections] = weights
        pending[sections] &= ~known
    if first.inner.all() and second.inner.all():  # else the row of a section might be mapped to a leaf below a row
        if len(ones_2):
            pending[:, ones_2] &= ~(first.is_row[:, None] & equal[:, ones_2 - 1] & ~equal[:, ones_2])
        if len(ones_1):
            pending[ones_1] &= ~(second.is_row & equal[ones_1 - 1] & ~equal[ones_1])


def _over_one_row(forest: Forest) -> Ints:
    """The places among the heads of those whose only child is a row."""
    heads, start, is_row = forest.heads.tolist(), forest.first[forest.heads].tolist(), forest.is_row.tolist()
    over = [
        rank
        for rank in range(1, len(heads))
        if is_row[rank - 1] and heads[rank] == heads[rank - 1] + 1 and start[rank] == start[rank - 1]
    ]
    return np.array(over, np.intp)
