"""Ranks of engines: shared where the difference between two of them may be chance (docs/statistics.md)."""

from __future__ import annotations

from loupe.report.collect import Group
from loupe.report.visible_differences import FEW, needed, no_ranks, shown_at_all, size
from loupe.stats.comparison import is_clear
from loupe.stats.ranks import Standings, standings
from loupe.types import Result, SampleScores


def standings_of(group: Group) -> Standings | None:
    """Every two engines compared, by their places in the group; None where the benchmark itself is gone."""
    if group.benchmark is None:
        return None
    runs: dict[str, list[SampleScores]] = {
        str(place): list(entrant.counts()) for place, entrant in enumerate(group.entrants)
    }
    apart = {str(place) for place, entrant in enumerate(group.entrants) if group.headline in entrant.left_out}
    return standings(runs, group.measures, group.headline, summarize=group.benchmark.summarize, unranked=apart)


def ranks_of(group: Group, found: Standings | None) -> list[str]:
    """The rank of each engine by the headline measure, in the group's order; "–" without a value.

    Where the benchmark itself is gone nothing can be compared: engines are then numbered by their stored values.
    """
    if found is None:
        return [str(place) if entrant.result else "–" for place, entrant in enumerate(group.entrants, 1)]
    return [str(found.ranks[str(place)] or "–") for place in range(len(group.entrants))]


def how_ranked(group: Group, ranks: list[str]) -> str:
    """What a shared rank is, or why engines have none; "" where there is nothing to rank."""
    values = [result for result in group.results if _has_headline(group, result)]
    if not values:
        why = next((result.not_computed.get(group.headline, "") for result in group.results), "")
        because = f" ({why})" if why else ""
        return f"No ranks and no bars: {_title(group)} was not computed{because}." if group.results else ""
    if len(values) < 2:
        return ""
    if set(ranks) == {"–"}:
        return no_ranks(_title(group))
    shared = "Engines share a rank where the difference between them may be chance"
    pairs = len(values) * (len(values) - 1) // 2
    return f"{shared}, corrected over all {pairs:,} pairs of them." if pairs > 1 else f"{shared}."


def _has_headline(group: Group, result: Result) -> bool:
    return group.headline in result.measures and result.measures[group.headline].value is not None


def _title(group: Group) -> str:
    return next((one.title or one.name for one in group.measures if one.name == group.headline), group.headline)


def visible_to_best(group: Group, compared: Standings | None) -> list[str]:
    """A sentence for each engine on few documents: what difference to the best one these could have shown at all."""
    scored = [place for place, entrant in enumerate(group.entrants) if entrant.result and not entrant.left_out]
    unit = next((measure.unit for measure in group.measures if measure.name == group.headline), "")
    if compared is None or not unit:
        return []
    sentences = []
    for place in scored[1:]:
        found = compared.pairs[str(place), str(scored[0])].get(group.headline)
        if found is None or found.difference is None or found.shared > FEW:
            continue
        differ = (
            f"{group.entrants[place].label} and {group.entrants[scored[0]].label} "
            f"differ by {size(found.difference, unit)}"
        )
        if is_clear(found):
            sentences.append(f"{differ}, which {found.shared} documents show.")
        else:
            sentences.append(f"{differ}; {shown_at_all(found, unit)}; needed: {needed(found)}.")
    return sentences
