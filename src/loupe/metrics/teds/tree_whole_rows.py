"""Small tables: what a best mapping saves, from whole rows alone.

Most tables are rows, or sections (thead, tbody) of rows, of cells, and mostly a best mapping aligns rows whole; the
bound that proves it is that of tree_programme.py. What a pair of rows saves begins as an upper bound, which a few
calls of NumPy give for all pairs; only those that a best alignment of such bounds takes are aligned cell by cell.
Tables of another shape, and those where the bound does not hold, are left to tree_distance.py, whose arrays pay for
themselves in large tables only. Tests: equal to it, and to the textbook.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from itertools import accumulate, product
from math import inf
from operator import sub
from typing import Final, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from loupe.metrics.teds.table_tree import TableTree
from loupe.metrics.teds.tree_forest import Floats

_ROUNDING: Final = 1e-10

Weights = list[list[float]]


class Rows(NamedTuple):
    """A table as rows of cells, in reversed document order."""

    sections: list[int]  # their labels; empty: the rows stand in the table itself
    section_of: list[int]  # per row
    labels: list[int]
    starts: list[int]  # per row: its first cell; at the end the number of all cells
    cell_labels: list[int]
    contents: list[int]


def rows_of(tree: TableTree) -> Rows | None:
    """The rows of a table; None where anything but sections, rows and cells stands in it."""
    labels, contents, first = tree.labels, tree.contents, tree.first
    rows: list[int] = []
    sections: list[int] = []
    for node, count in enumerate(tree.counts):
        if count:
            (rows if count == node - first[node] else sections).append(node)
    root = len(tree) - 1
    if not sections or sections.pop() != root:
        return None
    cell_labels: list[int] = []
    cells: list[int] = []
    starts = [0]
    for row in rows:
        cell_labels += labels[first[row] : row]
        cells += contents[first[row] : row]
        starts.append(len(cells))
    if len(cells) + len(rows) + len(sections) != root:
        return None
    if sections and ([0, *(node + 1 for node in sections)] != [*(first[node] for node in sections), root]):
        return None
    return Rows(
        [labels[node] for node in sections],
        [bisect(sections, row) for row in rows],
        [labels[row] for row in rows],
        starts,
        cell_labels,
        cells,
    )


def savings_of_whole_rows(
    first: TableTree, second: TableTree, texts: list[str], *, structure_only: bool
) -> float | None:
    """Compute what the best mapping of two trees saves, if they are made of rows and whole rows provably save it; else
    None.
    """
    if first.labels[-1] != second.labels[-1]:
        return None
    one, two = rows_of(first), rows_of(second)
    if one is None or two is None or not _comparable(one, two):
        return None
    sections = len(one.sections)
    pairs = RowPairs.of(one, two, _cell_savings(one, two, None if structure_only else texts))
    within: Weights | None = None
    if sections > 1:
        within = [[0.0 if section == own else inf for section in two.section_of] for own in one.section_of]
    reached = pairs.best(within)
    reached += sections + sum(mine == other for mine, other in zip(one.sections, two.sections, strict=True))
    # Rows and cells save at most this where sections, which save up to 1 on either side, can add nothing.
    limit = reached - 2 * sections + _ROUNDING
    if sections > 1 and pairs.best(None, limit) > limit:
        return None  # a row of one section belongs to a row of another
    if pairs.are_bounded_by(limit) or (best := pairs.with_cells_alone(limit)) <= limit:
        return 2.0 + reached
    return None if sections else 2.0 + best


def _comparable(one: Rows, two: Rows) -> bool:
    """True if only rows can be mapped to rows, and cells to cells, at no cost for their labels."""
    if len(one.sections) != len(two.sections):
        return False
    above_1, above_2 = {*one.sections, *one.labels}, {*two.sections, *two.labels}
    return (
        above_1.isdisjoint(two.cell_labels)
        and above_2.isdisjoint(one.cell_labels)
        and set(one.sections).isdisjoint(two.labels)
        and set(two.sections).isdisjoint(one.labels)
    )


def _cell_savings(one: Rows, two: Rows, texts: list[str] | None) -> Floats:
    """Compute what each pair of cells saves, as in tree_forest.py."""
    if texts is None:
        savings = np.full((len(one.contents), len(two.contents)), 2.0)
    else:
        texts_1, texts_2 = [texts[content] for content in one.contents], [texts[content] for content in two.contents]
        savings = cdist(texts_1, texts_2, scorer=Levenshtein.normalized_distance, dtype=np.float64)
        np.subtract(2.0, savings, out=savings)
    if len({*one.cell_labels, *two.cell_labels}) > 1:
        savings[np.array(one.cell_labels)[:, None] != np.array(two.cell_labels)] = 1.0
    return savings


@dataclass(slots=True)
class RowPairs:
    """The savings of each pair of rows: an upper bound, or what it is, once somebody needed to know."""

    one: Rows
    two: Rows
    weights: Weights
    known: set[tuple[int, int]]
    stray_1: list[float]  # per row: what its cells save with the partners that suit them best, wherever they stand
    stray_2: list[float]
    cells: Weights

    @staticmethod
    def of(one: Rows, two: Rows, cells: Floats) -> RowPairs:
        """Bounds for all pairs: each cell of one row with the cell of the other that suits it best."""
        starts_1, starts_2 = np.array(one.starts[:-1]), np.array(two.starts[:-1])
        best_1, best_2 = np.maximum.reduceat(cells, starts_2, axis=1), np.maximum.reduceat(cells, starts_1, axis=0)
        bounds = np.minimum(np.add.reduceat(best_1, starts_1, axis=0), np.add.reduceat(best_2, starts_2, axis=1))
        if len({*one.labels, *two.labels}) == 1:
            bounds += 2.0
        else:
            bounds += 1.0 + (np.array(one.labels)[:, None] == np.array(two.labels))
        return RowPairs(
            one,
            two,
            bounds.tolist(),
            set(),
            np.add.reduceat(best_1.max(axis=1), starts_1).tolist(),
            np.add.reduceat(best_2.max(axis=0), starts_2).tolist(),
            cells.tolist(),
        )

    def best(self, less: Weights | None, enough: float = -inf) -> float:
        """Compute what the best alignment of rows saves, with so much `less` for each pair.

        A bound of it where that is at most `enough`.
        """
        while True:  # as long as there are pairs to look at
            weights = self.weights
            if less is not None:
                weights = [list(map(sub, *rows)) for rows in zip(weights, less, strict=True)]
            table = _alignments(weights)
            total = table[-1][-1]
            if total <= enough:
                return total
            overrated = [self._overrated(*pair) for pair in _taken(table) if pair not in self.known]
            if not any(overrated):
                return total

    def _overrated(self, row_1: int, row_2: int) -> bool:
        """Find out what two rows save; whether that is less than was thought."""
        self.known.add((row_1, row_2))
        one, two = self.one, self.two
        start, stop = two.starts[row_2], two.starts[row_2 + 1]
        cells = [row[start:stop] for row in self.cells[one.starts[row_1] : one.starts[row_1 + 1]]]
        base = 1.0 + (one.labels[row_1] == two.labels[row_2])
        enough = self.weights[row_1][row_2] - _ROUNDING
        # Mostly each cell goes best with the one at its place.
        if len(cells) == stop - start and base + sum([row[place] for place, row in enumerate(cells)]) >= enough:
            return False
        self.weights[row_1][row_2] = saved = base + _alignments(cells)[-1][-1]
        return saved < enough

    def are_bounded_by(self, limit: float) -> bool:
        """True if no mapping of rows and cells saves more, by a bound that is quickly found.

        Rows without a partner earn what their cells save at most. Either side will do; the one that has less to save
        gives the lower bound.
        """
        one, two = self.one.labels, self.two.labels
        earned_1, earned_2 = sum(self.stray_1), sum(self.stray_2)
        if earned_1 + len(one) < earned_2 + len(two):
            enough, stray = limit - earned_1, [[saved] * len(two) for saved in self.stray_1]
        else:
            enough, stray = limit - earned_2, [self.stray_2] * len(one)
        return enough >= 0.0 and self.best(stray, enough) <= enough

    def with_cells_alone(self, limit: float) -> float:
        """Compute what the best mapping of rows and cells saves, rows with other partners than their cells included.

        A bound of it where that is at most `limit`.
        """
        best = self._with_cells_alone()
        if best > limit:
            for pair in product(range(len(self.one.labels)), range(len(self.two.labels))):
                if pair not in self.known:
                    self._overrated(*pair)
            best = self._with_cells_alone()
        return best

    def _with_cells_alone(self) -> float:
        """The programme of tree_programme.py over cells, in which whole rows may be taken at once."""
        one, two = self.one, self.two
        sums = [0.0] * (len(two.contents) + 1)
        for row, weights in enumerate(self.weights):
            before = sums
            sums = _alignments(self.cells[one.starts[row] : one.starts[row + 1]], before)[-1]
            for start, end, weight in zip(two.starts, two.starts[1:], weights, strict=False):
                if before[start] + weight > sums[end]:
                    sums[end] = before[start] + weight
            sums = list(accumulate(sums, max))
        return sums[-1]


def _alignments(weights: Weights, before: list[float] | None = None) -> Weights:
    """The largest sum of weights of pairs in order, of the first rows with the first columns, for all their numbers.

    `before`: those of rows above the first.
    """
    table = [before or [0.0] * (len(weights[0]) + 1)]
    for row in weights:
        before = table[-1]
        corner = best = 0.0
        sums = [0.0]
        for weight, above in zip(row, before[1:], strict=True):
            corner += weight
            if corner > best:
                best = corner
            if above > best:
                best = above
            sums.append(best)
            corner = above
        table.append(sums)
    return table


def _taken(table: Weights) -> list[tuple[int, int]]:
    """The pairs of one of the best alignments."""
    pairs = []
    row, column = len(table) - 1, len(table[0]) - 1
    while row and column:
        if table[row][column] == table[row - 1][column]:
            row -= 1
        elif table[row][column] == table[row][column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return pairs
