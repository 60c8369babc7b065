"""Ranks of engines: shared where the difference between two of them may be chance (docs/statistics.md)."""

from __future__ import annotations

from loupe.report.collect import Group
from loupe.report.visible_differences import FEW, needed, no_ranks, size
from loupe.stats.comparison import compare
from loupe.stats.ranks import standings
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
    found = standings(runs, group.measures, group.headline, summarize=group.benchmark.summarize)
    return [str(found.ranks[place] or "–") for place in runs]


def untold(group: Group, ranks: list[str]) -> str:
    """Why engines with values have no ranks; "" where they have some."""
    values = [result.measures[group.headline].value for result in group.results if group.headline in result.measures]
    unranked = len([value for value in values if value is not None]) > 1 and set(ranks) == {"–"}
    return no_ranks(group.headline) if unranked else ""


def visible_to_best(group: Group) -> list[str]:
    """A sentence for each engine on few documents: what difference to the best one these could have shown at all."""
    scored = [entrant for entrant in group.entrants if entrant.result]
    if group.benchmark is None or len(scored) < 2:
        return []
    headline = [measure for measure in group.measures if measure.name == group.headline]
    measures, summarize = (group.measures, group.benchmark.summarize) if group.benchmark.summarize else (headline, None)
    best = list(scored[0].counts())
    if len(best) > FEW:
        return []
    sentences = []
    for entrant in scored[1:]:
        found = compare(measures, list(entrant.counts()), best, summarize=summarize).get(group.headline)
        if found is not None and found.detectable is not None and headline:
            unit = headline[0].unit
            differ = f"{entrant.label} and {scored[0].label} differ by {size(found.difference, unit)}"
            shows = f"{found.shared} documents show one of {size(found.detectable, unit)} or more (80 % power)"
            sentences.append(f"{differ}; {shows}; needed: {needed(found)}.")
    return sentences
