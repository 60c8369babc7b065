"""The dynamic programme of the tree edit distance, a row of the table at a time.

Source: K. Zhang and D. Shasha, SIAM J. Comput. 18 (1989), in the form "best savings" (tree_forest.py) over reversed
document order, where the last subtree of a forest plays the part that the first one has in the paper. Tests: equal to
the textbook version on random trees.

    s[i][j] = savings of the first i nodes against the first j
            = max(s[i-1][j], s[i][j-1], s[first(i)][first(j)] + w[i][j])
    w[i][j] = 2 - rename(i, j) + savings of the children of i against those of j

The maximum with s[i][j-1] is a running maximum, so a whole row i costs three or four calls of numpy. It is taken of the
bits, as integers: of numbers that are not negative these have the same order, and are compared in half the time.
A leaf is never mapped to a node with children and another label: that pair saves 1, and a leaf below that node as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
