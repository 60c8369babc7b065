"""What a best mapping of two forests cannot hold, and so need not be looked at.

`achievable_savings` (tree_greedy.py) makes one good mapping quickly. A pair of nodes whose most optimistic mapping
saves less is then left out: with i mapped to j, nodes before, inside and behind i can only be mapped to those before,
inside and behind j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loupe.metrics.tree_forest import Flags, Floats, Forest, Ints, Windows

_BLOCK: Final = 48  # leaves that are compared in one call
_ROUNDING: Final = 1e-6  # sums of up to some 10,000 savings are exact to about 1e-11
"""So that a best mapping itself is never left out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the nodes before each node save at most: `before_1[i]` is that of the first forest's nodes 0 to i - 1."""

    before_1: Floats
    before_2: Floats


def savings_limits(first: Forest, second: Forest, *, texts: bool) -> Limits:
    """Sum up what each node can save at most, whatever it is mapped to."""
    return Limits(_summed_limits(first, second, texts), _summed_limits(second, first, texts))


def _summed_limits(forest: Forest, other: Forest, texts: bool) -> Floats:
    limits = np.full(len(forest), 2.0)
    if texts:
        # Texts of m and n characters that differ have a distance of 1/(m + 1) at least: 1/m for n <= m, else (n - m)/n.
        leaves = forest.leaves
        new = ~np.isin(forest.keys[leaves], other.keys[other.leaves])
        lengths = np.array([len(forest.texts[leaf]) for leaf in leaves[new].tolist()])
        limits[leaves[new]] -= 1.0 / (lengths + 1.0)
        limits[forest.heads] = 2.0  # also leaves that are no cells, such as an empty row
    limits[~np.isin(forest.labels, other.labels)] = 1.0
    return np.concatenate(([0.0], np.cumsum(limits)))


def head_candidates(first: Forest, second: Forest, limits: Limits, savings: float) -> Flags:
    """Which pairs of heads a mapping with these savings, or more, may hold."""
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
    rows = candidates[first.height_one][:, second.height_one]
    some = rows.any(axis=1)
    leftmost = second.first[second.rows[rows[some].argmax(axis=1)]] if some.any() else []
    rightmost = second.rows[::-1][rows[some][:, ::-1].argmax(axis=1)] if some.any() else []
    for row, start, end in zip(first.rows[some].tolist(), leftmost, rightmost, strict=True):
        children = slice(first.first[row], row)
        np.minimum(low[children], start, out=low[children])
        np.maximum(high[children], end + 1, out=high[children])
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
