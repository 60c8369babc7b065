"""Rows paired with columns at the least total cost; among equally cheap ways the one that SciPy takes.

Method: shortest augmenting paths (Crouse, "On implementing 2D rectangular assignment algorithms", 2016). Official
numbers come from `scipy.optimize.linear_sum_assignment`, and which of several cheapest ways it takes decides scores:
docs/protocols/cdm.md#equal-assignments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Costs = NDArray[np.float64]


def assign(costs: NDArray[Any]) -> tuple[Indices, Indices]:
    """The rows, ascending, and the column of each; the shorter side is paired completely. Costs are finite.

    >>> [side.tolist() for side in assign(np.array([[4, 1, 3], [2, 0, 5]]))]
    [[0, 1], [1, 0]]
    """
    costs = np.asarray(costs, dtype=np.float64)
    if costs.shape[0] > costs.shape[1]:
        columns, rows = assign(costs.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    pairing = _Pairing(costs)
    for row in range(len(costs)):
        pairing.add(row)
    return np.arange(len(costs)), pairing.column_of


class _Pairing:
    """The rows added so far, each with its column, and the prices that make their costs comparable."""

    def __init__(self, costs: Costs) -> None:
        rows, columns = costs.shape
        self._costs = costs
        self._row_prices, self._column_prices = np.zeros(rows), np.zeros(columns)
        self._row_of = np.full(columns, -1)
        self.column_of = np.full(rows, -1)

    def add(self, row: int) -> None:
        """Pair one more row; rows before it move to other columns if that is cheaper."""
        lengths = self._costs[row] - self._column_prices
        through = np.full(len(lengths), row)
        left = np.arange(len(lengths))[::-1].copy()
        passed: list[int] = []
        while (taken := self._row_of[column := self._nearest(lengths, left, passed)]) >= 0:
            self._extend(int(taken), lengths, through, left[: len(left) - len(passed)], lengths[column])
        self._reprice(row, passed, lengths, lengths[column])
        while (previous := int(through[column])) != row:
            self._row_of[column] = previous
            self.column_of[previous], column = column, int(self.column_of[previous])
        self._row_of[column], self.column_of[row] = row, column

    def _nearest(self, lengths: Costs, left: Indices, passed: list[int]) -> int:
        """The next column: of equally near ones the last free one, else the first; a taken one leaves `left`."""
        open_columns = left[: len(left) - len(passed)]
        reached = lengths[open_columns]
        places = np.flatnonzero(reached == reached.min())
        free = places[self._row_of[open_columns[places]] < 0]
        if len(free):
            return int(open_columns[free[-1]])
        column = int(open_columns[places[0]])
        # The last of those left takes its place: this order decides among equal ones later.
        open_columns[places[0]] = open_columns[-1]
        passed.append(column)
        return column

    def _extend(self, row: int, lengths: Costs, through: Indices, open_columns: Indices, start: float) -> None:
        """Reach columns by way of a row that is paired already, where that is shorter."""
        # In this order: rounding decides, too.
        found = start + self._costs[row, open_columns] - self._row_prices[row] - self._column_prices[open_columns]
        shorter = found < lengths[open_columns]
        nearer = open_columns[shorter]
        lengths[nearer] = found[shorter]
        through[nearer] = row

    def _reprice(self, row: int, passed: list[int], lengths: Costs, length: float) -> None:
        """Prices under which the new pairs cost least."""
        self._row_prices[row] += length
        if passed:
            saved = length - lengths[passed]
            self._row_prices[self._row_of[passed]] += saved
            self._column_prices[passed] -= saved
