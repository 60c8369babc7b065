"""Ranks of engines: shared where the difference between two of them may be chance (docs/statistics.md)."""

from __future__ import annotations

from loupe.report.collect import Group
from loupe.stats.comparison import shared_ranks
from loupe.types import SampleScores


def ranks_of(group: Group) -> list[str]:
    """The rank of each engine by the headline measure, in the group's order; "–" without a value.

    Where the benchmark itself is gone nothing can be compared: engines are then numbered by their stored values.
    """
    if group.benchmark is None:
        return [str(place) if entrant.result else "–" for place, entrant in enumerate(group.entrants, 1)]
    runs: dict[str, list[SampleScores]] = {
        str(place): list(entrant.counts()) for place, entrant in enumerate(group.entrants)
    }
    found = shared_ranks(runs, group.measures, group.headline, summarize=group.benchmark.summarize)
    return [str(found[place] or "–") for place in runs]
