"""Run the dynamic programme of the tree edit distance, a row of the table at a time.

Source: K. Zhang and D. Shasha, SIAM J. Comput. 18 (1989), in the form "best savings" (tree_forest.py) over reversed
document order, where the last subtree of a forest plays the part that the first one has in the paper. Tests: equal to
the textbook version on random trees.

    s[i][j] = savings of the first i nodes against the first j
            = max(s[i-1][j], s[i][j-1], s[first(i)][first(j)] + w[i][j])
    w[i][j] = 2 - rename(i, j) + savings of the children of i against those of j

The maximum with s[i][j-1] is a running maximum, so a whole row i costs three or four calls of numpy. It is taken of the
bits, as integers: of numbers that are not negative these have the same order, and are compared in half the time.
A leaf is never mapped to a node with children and another label: that pair saves 1, and a leaf below that node as much.

The weights of pairs of table rows, inner nodes whose children are all leaves, are many alignments of leaves at once.

A certificate spares the programme if rows can be aligned whole, and it would find nothing better over single cells.
Let the forests be rows, or sections (thead, tbody) of rows. In a mapping, cells of row a can stand opposite cells of
row b without a and b being mapped to each other only if both rows are mapped to no row (*stray*). So a mapping saves at
most

    weights of mapped pairs of rows + what cells of stray rows save + 1 for each section on either side,

and cells of stray rows save at most what each of them, on one side, saves with the partner that suits it best. The best
alignment of rows in which rows without a partner earn that much is a bound for all mappings. If an alignment of rows
that keeps to the sections reaches it, that one is a best mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import eq
from typing import Final, NamedTuple

import numpy as np

from loupe.metrics.teds.table_tree import TableTooLargeError
from loupe.metrics.teds.tree_forest import Flags, Floats, Forest, Ints, LeafWeights

MAX_OTHER_PAIRS: Final = 500_000
MAX_WORK: Final = 2_500_000_000  # about ten seconds
_STEP: Final = 2_000  # what a row of the table costs besides its entries, in entries


@dataclass(slots=True)
class Programme:
    """Two forests, the weights of their leaves, and those of their heads as far as they are known."""

    first: Forest
    second: Forest
    leaves: LeafWeights
    equal: Flags  # whether their labels are, per pair of heads
    heads: Floats  # w per pair of heads; minus infinity: not known yet, or never in a best mapping
    pending: Flags  # pairs of heads whose weight comes out of a programme over their descendants
    breaks: list[int]  # per node of the first forest, where the run of leaves that begins there ends at the latest
    last_use: dict[int, int]  # first node of a subtree -> its last head
    ranks: dict[int, int]  # head of the first forest -> its place among the heads


def open_programme(first: Forest, second: Forest, leaves: LeafWeights, candidates: Flags | None) -> Programme:
    """Set the weights that need no search; `candidates` are the pairs of heads that a best mapping may hold."""
    equal = first.labels[first.heads][:, None] == second.labels[second.heads]
    if candidates is None:
        candidates = np.ones(equal.shape, np.bool_)
    heads = np.full(equal.shape, -np.inf)
    pending = candidates & first.inner[:, None] & second.inner
    # One has children and the other none: of equal labels they may be mapped, with nothing below them to save.
    lone = candidates & equal & (first.inner[:, None] != second.inner)
    heads[lone] = 2.0
    starts = first.first[first.heads]
    stops = np.array(sorted({*first.heads.tolist(), *starts.tolist(), *leaves.blocks, len(first)}))
    breaks = stops[np.searchsorted(stops, np.arange(len(first)), side="right")].tolist()
    last_use = dict(zip(starts.tolist(), first.heads.tolist(), strict=True))
    ranks = {head: rank for rank, head in enumerate(first.heads.tolist())}
    return Programme(first, second, leaves, equal, heads, pending, breaks, last_use, ranks)


def weigh_other_heads(programme: Programme) -> None:
    """Find the weights of the remaining pairs of heads, inner ones first.

    Pairs that begin at the same two nodes come out of one programme. Those at (0, 0) are left to the last one.
    """
    first, second = programme.first, programme.second
    pairs = int(np.count_nonzero(programme.pending))
    if pairs > MAX_OTHER_PAIRS:
        raise TableTooLargeError(
            f"{pairs:,} pairs of nested elements to compare, at most {MAX_OTHER_PAIRS:,} are allowed"
        )
    ranks_1, ranks_2 = np.nonzero(programme.pending)
    groups: dict[tuple[int, int], tuple[int, int]] = {}
    for node_1, node_2 in zip(first.heads[ranks_1].tolist(), second.heads[ranks_2].tolist(), strict=True):
        key = int(first.first[node_1]), int(second.first[node_2])
        last = groups.get(key, (0, 0))
        groups[key] = max(last[0], node_1), max(last[1], node_2)
    groups.pop((0, 0), None)
    work = sum((last[0] - key[0] + 1) * (last[1] - key[1] + _STEP) for key, last in groups.items())
    if work > MAX_WORK:
        raise TableTooLargeError(f"the tables are too deeply nested to compare: {work:,} steps, at most {MAX_WORK:,}")
    for start_1, start_2 in sorted(groups, reverse=True):
        last_1, last_2 = groups[start_1, start_2]
        run(programme, range(start_1, last_1 + 1), range(start_2, last_2 + 1))


def run(programme: Programme, nodes_1: range, nodes_2: range, rows: list[Floats] | None = None) -> float:
    """Best savings of two ranges of whole subtrees; sets the weights of the heads that begin where the ranges do.

    `rows`, if given, receives every row of the table, for the way back.
    """
    leaves, first = programme.leaves, programme.first.first.tolist()
    start, stop, shift = nodes_1.start, nodes_1.stop, nodes_2.start
    table = np.zeros(len(nodes_2) + 1)
    saved = {start: table.copy()}  # the rows that a later head looks back to
    columns = _HeadColumns.of(programme, nodes_2)
    ranks = programme.ranks
    node = start
    while node < stop:
        if rows is not None:
            rows.append(table.copy())
        if node != start and node in programme.last_use:
            saved[node] = table.copy()
        rank = ranks.get(node)
        values = (
            None if rank is None else columns.values(programme, rank, saved[first[node]], table, first[node] == start)
        )
        end = node + 1
        if first[node] == node:
            if rank is None and rows is None:
                end = min(programme.breaks[node], stop)
            low, high = max(leaves.low[node], shift), min(leaves.high[node], nodes_2.stop)
            if low < high:
                _add_leaves(table, leaves, range(node, end), range(low, high), shift)
        if values is not None:
            columns.apply(values, table)
            if programme.last_use[first[node]] == node:
                del saved[first[node]]
        node = end
    if rows is not None:
        rows.append(table)
    return float(table[-1])


def _add_leaves(table: Floats, leaves: LeafWeights, nodes: range, window: range, shift: int) -> None:
    """The rows of some leaves, one after the other, all in one block."""
    low, high = window.start - shift, window.stop - shift
    old, new = table[low:high], table[low + 1 : high + 1]
    scratch = np.empty(len(window))
    first_column, width = leaves.low[nodes.start], leaves.high[nodes.start] - leaves.low[nodes.start]
    start = int(leaves.offsets[nodes.start]) + first_column
    block = leaves.values[start : start + len(nodes) * width].reshape(len(nodes), width)
    bits, new_bits = scratch.view(np.int64), new.view(np.int64)
    add, maximum, running_maximum = np.add, np.maximum, np.maximum.accumulate
    for weights in block[:, window.start - first_column : window.stop - first_column]:
        add(old, weights, scratch)
        maximum(scratch, new, out=scratch)
        running_maximum(bits, out=new_bits)
    np.maximum(table[high:], table[high], out=table[high:])


@dataclass(frozen=True, slots=True)
class _HeadColumns:
    """The heads of the second forest within one programme."""

    ranks: slice
    columns: Ints  # in the table: one behind the head
    first: Ints  # in the table: in front of its first descendant
    spine: Ints  # ranks of the inner heads whose descendants begin where the programme does
    shift: int

    @staticmethod
    def of(programme: Programme, nodes: range) -> _HeadColumns:
        forest = programme.second
        low, high = np.searchsorted(forest.heads, (nodes.start, nodes.stop)).tolist()
        heads = forest.heads[low:high]
        first = forest.first[heads] - nodes.start
        spine = low + np.flatnonzero((first == 0) & forest.inner[low:high])
        return _HeadColumns(slice(low, high), heads + (1 - nodes.start), first, spine, nodes.start)

    def values(self, programme: Programme, rank: int, before: Floats, table: Floats, on_spine: bool) -> Floats:
        """Savings when the head is mapped to each of these; `before` is the row in front of its first descendant."""
        weights = programme.heads[rank]
        if on_spine:
            ranks = self.spine[programme.pending[rank, self.spine]]
            weights[ranks] = 1.0 + programme.equal[rank, ranks] + table[programme.second.heads[ranks] - self.shift]
        savings: Floats = before[self.first] + weights[self.ranks]
        return savings

    def apply(self, values: Floats, table: Floats) -> None:
        if len(values):
            table[self.columns] = np.maximum(table[self.columns], values)
            np.maximum.accumulate(table, out=table)


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


_ROUNDING: Final = 1e-10


class RowAlignment(NamedTuple):
    """The savings of the best alignment of whole rows, and whether no mapping saves more."""

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
    """True if a row has the label of one of the other's sections, and so could be mapped to it at no cost."""
    return bool(labels) and not set(labels).isdisjoint(forest.labels[forest.rows].tolist())


def _best_of_rows(programme: Programme) -> tuple[Floats, Floats]:
    """Compute what the cells of each row save with those partners that suit them best, for both forests."""
    leaves = programme.leaves
    return _row_sums(programme.first, leaves.best_1), _row_sums(programme.second, leaves.best_2)


def _row_sums(forest: Forest, values: Floats) -> Floats:
    before = np.concatenate(([0.0], values.cumsum()))
    sums: Floats = before[forest.rows] - before[forest.first[forest.rows]]
    return sums
