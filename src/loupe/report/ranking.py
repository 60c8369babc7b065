"""Ranks of engines: shared where the difference between two of them may be chance (docs/statistics.md)."""

from __future__ import annotations

from loupe.report.collect import Group
from loupe.stats.comparison import shared_ranks
from loupe.types import Score


def ranks_of(group: Group) -> list[str]:
    """The rank of each engine by the headline measure, in the group's order; "–" without a value.

    Where the benchmark itself is gone nothing can be compared: engines are then numbered by their stored values.
    """
    if group.benchmark is None:
        return [str(place) if entrant.result else "–" for place, entrant in enumerate(group.entrants, 1)]
    rows: dict[str, list[tuple[str, Score]]] = {}
    for place, entrant in enumerate(group.entrants):
        scored = [scores for scores in entrant.run.scores() if entrant.result is not None]
        rows[str(place)] = [(scores.group or scores.sample, score) for scores in scored for score in scores.scores]
    found = shared_ranks(rows, group.measures, group.headline, summarize=group.benchmark.summarize)
    return [str(found[place] or "–") for place in rows]
