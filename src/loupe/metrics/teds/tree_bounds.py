"""What a best mapping of two forests cannot hold, and so need not be looked at.

`achievable_savings` (tree_greedy.py) makes one good mapping quickly. A pair of nodes whose most optimistic mapping
saves less is then left out: with i mapped to j, nodes before, inside and behind i can only be mapped to those before,
inside and behind j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loupe.metrics.teds.tree_forest import Flags, Floats, Forest, Ints, Windows

_BLOCK: Final = 48  # leaves that are compared in one call
_ROUNDING: Final = 1e-6  # sums of up to some 10,000 savings are exact to about 1e-11
"""So that a best mapping itself is never left out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the nodes before each node save at most: `before_1[i]` is that of the first forest's nodes 0 to i - 1."""

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
