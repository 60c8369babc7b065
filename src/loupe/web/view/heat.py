"""Slices against measures as one coloured table: where a run is weak, at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loupe.report import leaderboard
from loupe.results.tables.record import Cell
from loupe.types import Estimate, Measure, Result
from loupe.web.view.board import Board

#: Rows of one tag.
_LIMIT = 60


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One slice: its cells by measure, and how many units the largest has."""

    name: str
    n: int
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One run: the whole first, then the slices of each tag."""

    label: str
    key: str
    measures: list[Measure]
    whole: HeatRow
    tags: list[tuple[str, list[HeatRow], int]]

    @property
    def reasons(self) -> list[str]:
        """The reasons why cells have no value, each once."""
        rows = [self.whole, *(row for _, shown, _ in self.tags for row in shown)]
        return list(dict.fromkeys(cell.note for row in rows for cell in row.cells if cell.note))


def heat_maps(board: Board) -> list[HeatMap]:
    """The map of every run that has a result, best first."""
    group = board.group()
    measures = leaderboard.columns(group)
    maps = []
    for entrant, run in zip(group.entrants, board.ordered(), strict=True):
        result = entrant.result
        if result is None:
            continue
        tags = []
        for tag, values in result.slices.items():
            rows = [_row(value, measures, result, estimates) for value, estimates in values.items()]
            rows = [row for row in rows if row.n]
            if len(rows) > _LIMIT:
                rows.sort(key=lambda row: (-row.n, row.name))
            if len(rows) > 1:
                tags.append((tag, rows[:_LIMIT], max(0, len(rows) - _LIMIT)))
        maps.append(HeatMap(entrant.label, run.key, measures, _row("all", measures, result, result.measures), tags))
    return maps


def _row(name: str, measures: list[Measure], result: Result, estimates: Mapping[str, Estimate]) -> HeatRow:
    cells = [leaderboard.sliced(result, estimates, measure) for measure in measures]
    return HeatRow(name, max((cell.n for cell in cells), default=0), cells)
