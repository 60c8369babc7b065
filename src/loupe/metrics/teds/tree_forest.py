"""The two forests whose savings are sought, as arrays, and the tables of weights that the dynamic programme reads.

A mapped pair of nodes spares one deletion and one insertion and costs one rename: it *saves* 2 - rename, between 1
and 2. So distance = nodes of both trees - savings, and the best mapping is the one that saves most.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from loupe.metrics.teds.table_tree import TableTooLargeError, TableTree

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

MAX_CELL_PAIRS: Final = 25_000_000  # 200 MB of weights, about a second
MAX_CHARACTER_PAIRS: Final = 50_000_000_000  # a few seconds of bit-parallel Levenshtein
MAX_HEAD_PAIRS: Final = 10_000_000  # some tables of that size are needed


@dataclass(frozen=True, slots=True)
class Forest:
    """A run of whole subtrees of a tree, numbered from 0 in reversed document order.

    `heads` are the nodes that may be mapped to a node with children: inner nodes, and leaves of the same label as one.
    """

    labels: Ints
    first: Ints
    contents: Ints
    leaves: Ints
    heads: Ints
    keys: list[int]  # per head; equal numbers: equal subtrees, as far as the comparison at hand looks
    inner: Flags  # per head: has children
    rows: Ints  # the heads whose children have no children, such as table rows
    is_row: Flags  # per head

    def __len__(self) -> int:
        return len(self.labels)


def cut_forests(
    trees: tuple[TableTree, TableTree], parts: tuple[range, range], *, structure_only: bool
) -> tuple[Forest, Forest]:
    """The forests in the given parts of two trees. Raises TableTooLargeError."""
    labels = [_numbers(tree.labels, part) for tree, part in zip(trees, parts, strict=True)]
    firsts = [_numbers(tree.first, part) - part.start for tree, part in zip(trees, parts, strict=True)]
    inner = [first < np.arange(len(first)) for first in firsts]
    inner_labels = [set(labels[side][inner[side]].tolist()) for side in (0, 1)]
    forests = []
    for side, (tree, part) in enumerate(zip(trees, parts, strict=True)):
        first = firsts[side]
        keys = tree.shapes if structure_only else tree.subtrees
        leaves = np.flatnonzero(~inner[side])
        head = inner[side]
        lone = inner_labels[1 - side].intersection(labels[side][leaves].tolist())
        if lone:
            head = head | np.isin(labels[side], list(lone))
        heads = np.flatnonzero(head)
        is_inner = inner[side][heads]
        inner_before = inner[side].cumsum() - inner[side]
        is_row = is_inner & (inner_before[heads] == inner_before[first[heads]])
        forest = Forest(
            labels=labels[side],
            first=first,
            contents=_numbers(tree.contents, part),
            leaves=leaves,
            heads=heads,
            keys=[keys[part.start + head] for head in heads.tolist()],
            inner=is_inner,
            rows=heads[is_row],
            is_row=is_row,
        )
        forests.append(forest)
    count_1, count_2 = len(forests[0].heads), len(forests[1].heads)
    if count_1 * count_2 > MAX_HEAD_PAIRS:
        raise TableTooLargeError(
            f"{count_1 * count_2:,} pairs of rows to compare, at most {MAX_HEAD_PAIRS:,} are allowed"
        )
    return forests[0], forests[1]


def _numbers(values: list[int], part: range) -> Ints:
    return np.array(values[part.start : part.stop], np.intp)


@dataclass(frozen=True, slots=True)
class Windows:
    """For blocks of nodes of the first forest, the nodes of the second that their leaves may be mapped to.

    Neither end of the windows ever moves back from one block to the next.
    """

    starts: list[int]  # first node of each block
    low: list[int]
    high: list[int]


@dataclass(frozen=True, slots=True)
class LeafWeights:
    """The savings of each pair of leaves: that of (i, j) stands at `values[offsets[i] + j]` for low[i] <= j < high[i].

    At a j that is no leaf stands minus infinity.
    """

    values: Floats
    offsets: Ints
    low: list[int]
    high: list[int]
    blocks: list[int]  # first node of each block; the window is the same within a block
    best_1: Floats  # per node of the first forest: what it saves with the partner that suits it best
    best_2: Floats


def weigh_leaves(first: Forest, second: Forest, windows: Windows, texts: list[str] | None) -> LeafWeights:
    """Compare every leaf with those in its window; without `texts`, what is written in cells does not count."""
    bounds = np.searchsorted(first.leaves, [*windows.starts, len(first)]).tolist()
    widths = [high - low for low, high in zip(windows.low, windows.high, strict=True)]
    areas = [(stop - start) * width for (start, stop), width in zip(pairwise(bounds), widths, strict=True)]
    if sum(areas) > MAX_CELL_PAIRS:
        raise TableTooLargeError(f"{sum(areas):,} pairs of cells to compare, at most {MAX_CELL_PAIRS:,} are allowed")
    texts_1 = texts_2 = []
    if texts is not None:
        texts_1 = [texts[content] for content in first.contents[first.leaves].tolist()]
        texts_2 = [texts[content] for content in second.contents.tolist()]
        _check_text_work(texts_1, texts_2, bounds, windows)
    values = np.empty(sum(areas))
    offsets = np.zeros(len(first), np.intp)
    most = np.full(len(second), -np.inf)
    most[second.leaves] = 2.0
    best_1, best_2 = np.zeros(len(first)), np.zeros(len(second))
    place = 0
    for (start, stop), low, width, area in zip(pairwise(bounds), windows.low, widths, areas, strict=True):
        rows, window = first.leaves[start:stop], slice(low, low + width)
        offsets[rows] = np.arange(place - low, place - low + area, width or 1)
        if not area:
            continue
        weights = values[place : place + area].reshape(len(rows), width)
        if texts is None:
            weights[:] = most[window]
        else:
            distances = cdist(
                texts_1[start:stop], texts_2[window], scorer=Levenshtein.normalized_distance, dtype=np.float64
            )
            np.subtract(most[window], distances, out=weights)
        _allow_for_labels(weights, first.labels[rows], second.labels[window], most[window])
        best_1[rows] = np.maximum(weights.max(axis=1), 0.0)  # none may suit it
        best_2[window] = np.maximum(best_2[window], weights.max(axis=0))
        place += area
    return LeafWeights(values, offsets, *_by_node(windows, len(first)), windows.starts, best_1, best_2)


def _by_node(windows: Windows, count: int) -> tuple[list[int], list[int]]:
    """Both ends of the window of each node."""
    low: list[int] = []
    high: list[int] = []
    blocks = zip(pairwise([*windows.starts, count]), windows.low, windows.high, strict=True)
    for (start, stop), lowest, highest in blocks:
        low += [lowest] * (stop - start)
        high += [highest] * (stop - start)
    return low, high


def _check_text_work(texts_1: list[str], texts_2: list[str], bounds: list[int], windows: Windows) -> None:
    if len("".join(texts_1)) * len("".join(texts_2)) <= MAX_CHARACTER_PAIRS:
        return
    before_1, before_2 = (np.cumsum([0, *map(len, texts)]) for texts in (texts_1, texts_2))
    work = int((np.diff(before_1[bounds]) * (before_2[windows.high] - before_2[windows.low])).sum())
    if work > MAX_CHARACTER_PAIRS:
        raise TableTooLargeError(
            f"{work:,} pairs of characters to compare, at most {MAX_CHARACTER_PAIRS:,} are allowed"
        )


def _allow_for_labels(weights: Floats, rows: Ints, columns: Ints, most: Floats) -> None:
    """Leaves whose tags or spans differ save 1, whatever they hold."""
    is_leaf = most > 0
    odd_rows = np.flatnonzero(rows != rows[0])
    odd = weights[odd_rows]
    odd_columns = np.flatnonzero((columns != rows[0]) & is_leaf)
    if len(odd_columns):
        weights[:, odd_columns] = 1.0
    if len(odd_rows):
        odd[(columns != rows[odd_rows][:, None]) & is_leaf] = 1.0
        weights[odd_rows] = odd
