"""A table ready to be searched: cell texts in the form in which they are compared, and what a cell has around it."""

from __future__ import annotations

from functools import cached_property

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.text.normalization import normalize
from loupe.benchmarks.shared.table_answers.table_grid import Axis, Direction, Table

#: What a relation looks at: next to the cell, or all headings that way.
_DIRECTIONS: dict[str, Direction] = {"up": "up", "down": "down", "left": "left", "right": "right"}
_AXES: dict[str, Axis] = {"top_heading": "up", "left_heading": "left"}


#: Texts whose similarities to the cells are kept.
_REMEMBERED = 16


class ReadTable:
    """Cells by index; similarities lie in 0..1."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._further: dict[Axis, list[set[int]]] = {}
        self._headed: dict[Axis, list[bool]] = {}
        self._ratios: dict[str, dict[str, float]] = {}

    @cached_property
    def texts(self) -> list[str]:
        """The normalised text of each cell."""
        written = {cell.text for cell in self.table.cells}
        normalized = {text: normalize(text) for text in written}
        return [normalized[cell.text] for cell in self.table.cells]

    def similarities(self, text: str) -> list[float]:
        """How similar each cell is to a text; equal cells are compared once, for all tests of a page."""
        if text not in self._ratios:
            if len(self._ratios) >= _REMEMBERED:
                del self._ratios[next(iter(self._ratios))]
            self._ratios[text] = {cell: fuzz.ratio(text, cell) / 100.0 for cell in set(self.texts)}
        return [self._ratios[text][cell] for cell in self.texts]

    def related(self, index: int, relation: str) -> set[int]:
        """The cells that a relation of a cell may be satisfied by."""
        if relation in _AXES:
            return self.table.headings(index, _AXES[relation])
        return self.table.neighbours(index, _DIRECTIONS[relation])

    def satisfying(self, relation: str, similar: list[bool]) -> list[bool] | None:
        """For each cell whether some heading related to it is similar; None for relations to neighbours.

        One pass over the table instead of one walk per cell: what lies up or left of a cell begins before it does.
        """
        axis = _AXES.get(relation)
        if axis is None:
            return None
        further, headed = self._headings_of(axis)
        heading_matches, end_matches = [False] * len(similar), [False] * len(similar)
        cells = self.table.cells
        for index in self._order(axis):
            beyond = further[index]
            heading_matches[index] = (cells[index].heading and similar[index]) or any(
                heading_matches[other] for other in beyond
            )
            end_matches[index] = any(end_matches[other] for other in beyond) if beyond else similar[index]
        return [
            any((heading_matches if any(headed[other] for other in beyond) else end_matches)[other] for other in beyond)
            for beyond in further
        ]

    def _headings_of(self, axis: Axis) -> tuple[list[set[int]], list[bool]]:
        """Neighbours of every cell along an axis, and whether it is a heading or has one beyond it."""
        if axis not in self._further:
            cells = self.table.cells
            further = [self.table.neighbours(index, axis) for index in range(len(cells))]
            headed = [False] * len(cells)
            for index in self._order(axis):
                headed[index] = cells[index].heading or any(headed[other] for other in further[index])
            self._further[axis], self._headed[axis] = further, headed
        return self._further[axis], self._headed[axis]

    def _order(self, axis: Axis) -> list[int]:
        cells = self.table.cells
        return sorted(range(len(cells)), key=lambda index: cells[index].row if axis == "up" else cells[index].col)
