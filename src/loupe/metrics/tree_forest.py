"""The two forests whose savings are sought, as arrays, and the tables of weights that the dynamic programme reads.

A mapped pair of nodes spares one deletion and one insertion and costs one rename: it *saves* 2 - rename, between 1
and 2. So distance = nodes of both trees - savings, and the best mapping is the one that saves most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loupe.metrics.table_tree import TableTooLargeError, TableTree

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

MAX_CELL_PAIRS: Final = 25_000_000  # 200 MB of weights, about a second
MAX_CHARACTER_PAIRS: Final = 250_000_000_000  # a few seconds of bit-parallel Levenshtein


@dataclass(frozen=True, slots=True)
class Forest:
    """A run of whole subtrees of a tree, numbered from 0 in reversed document order.

    `heads` are the nodes that may be mapped to a node with children: inner nodes, and leaves of the same label as one.
    """

    labels: Ints
    first: Ints
    keys: Ints  # equal numbers: equal subtrees, as far as the comparison at hand looks
    subtrees: Ints  # equal numbers: equal subtrees, texts included
    texts: list[str]
    leaves: Ints
    heads: Ints
    inner: Flags  # per head: has children
    height_one: Flags  # per head: has children, and they have none; such as a table row

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def rows(self) -> Ints:
        """The heads of height one."""
        return self.heads[self.height_one]


def cut_forests(
    trees: tuple[TableTree, TableTree], parts: tuple[range, range], texts: list[str], *, structure_only: bool
) -> tuple[Forest, Forest]:
    """The forests in the given parts of two trees."""
    labels = [_numbers(tree.labels, part) for tree, part in zip(trees, parts, strict=True)]
    first = [_numbers(tree.first, part) - part.start for tree, part in zip(trees, parts, strict=True)]
    inner = [start < np.arange(len(start)) for start in first]
    forests = []
    for side, (tree, part) in enumerate(zip(trees, parts, strict=True)):
        head = inner[side] | np.isin(labels[side], labels[1 - side][inner[1 - side]])
        heads = np.flatnonzero(head)
        inner_before = np.concatenate(([0], np.cumsum(inner[side])))
        forest = Forest(
            labels=labels[side],
            first=first[side],
            keys=_numbers(tree.shapes if structure_only else tree.subtrees, part),
            subtrees=_numbers(tree.subtrees, part),
            texts=[texts[content] for content in tree.contents[part.start : part.stop]],
            leaves=np.flatnonzero(~inner[side]),
            heads=heads,
            inner=inner[side][heads],
            height_one=inner[side][heads] & (inner_before[heads] == inner_before[first[side][heads]]),
        )
        forests.append(forest)
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
    """What each pair of leaves saves: that of (i, j) stands at `values[offsets[i] + j]` for low[i] <= j < high[i].

    At a j that is no leaf stands minus infinity.
    """

    values: Floats
    offsets: Ints
    low: list[int]
    high: list[int]
    blocks: list[int]  # first node of each block; the window is the same within a block


def weigh_leaves(first: Forest, second: Forest, windows: Windows, *, texts: bool) -> LeafWeights:
    """Compare every leaf with those in its window; `texts` says whether what is written in cells counts."""
    bounds = np.searchsorted(first.leaves, [*windows.starts, len(first)]).tolist()
    areas = [(b - a) * (h - w) for a, b, w, h in zip(bounds, bounds[1:], windows.low, windows.high, strict=False)]
    if sum(areas) > MAX_CELL_PAIRS:
        raise TableTooLargeError(f"{sum(areas):,} pairs of cells to compare, at most {MAX_CELL_PAIRS:,} are allowed")
    if texts:
        _check_text_work(first, second, windows, bounds)
    values = np.empty(sum(areas))
    offsets = np.zeros(len(first), np.intp)
    inner = np.ones(len(second), np.bool_)
    inner[second.leaves] = False
    start = 0
    for block, area in enumerate(areas):
        window = slice(windows.low[block], windows.high[block])
        width = window.stop - window.start
        rows = first.leaves[bounds[block] : bounds[block + 1]]
        weights = values[start : start + area].reshape(len(rows), width)
        if texts and area:
            _fill_text_savings(weights, [first.texts[row] for row in rows.tolist()], second.texts[window])
        else:
            weights.fill(2.0)
        _allow_for_labels(weights, first.labels[rows], second.labels[window])
        weights[:, inner[window]] = -np.inf
        offsets[rows] = start + np.arange(len(rows)) * width - window.start
        start += area
    sizes = np.diff([*windows.starts, len(first)])
    low, high = np.repeat(windows.low, sizes).tolist(), np.repeat(windows.high, sizes).tolist()
    return LeafWeights(values, offsets, low, high, windows.starts)


def _check_text_work(first: Forest, second: Forest, windows: Windows, bounds: list[int]) -> None:
    lengths = np.array([len(text) for text in first.texts])[first.leaves]
    before = np.concatenate(([0], np.cumsum(lengths)))
    before_second = np.concatenate(([0], np.cumsum([len(text) for text in second.texts])))
    work = (before[bounds[1:]] - before[bounds[:-1]]) * (before_second[windows.high] - before_second[windows.low])
    if work.sum() > MAX_CHARACTER_PAIRS:
        raise TableTooLargeError(
            f"{int(work.sum()):,} pairs of characters to compare, at most {MAX_CHARACTER_PAIRS:,} are allowed"
        )


def _fill_text_savings(weights: Floats, rows: list[str], columns: list[str]) -> None:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    np.subtract(2.0, cdist(rows, columns, scorer=Levenshtein.normalized_distance, dtype=np.float64), out=weights)


def _allow_for_labels(weights: Floats, rows: Ints, columns: Ints) -> None:
    """Leaves whose tags or spans differ save 1, whatever they hold."""
    if not len(rows) or not len(columns):
        return
    usual = rows[0]
    odd_rows = np.flatnonzero(rows != usual)
    odd = weights[odd_rows]
    odd[columns != rows[odd_rows][:, None]] = 1.0
    weights[:, columns != usual] = 1.0
    weights[odd_rows] = odd
