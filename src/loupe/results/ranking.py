"""Ranks of engines: shared where the difference between two of them may be chance (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Mapping

from loupe.results.group_titles import listed
from loupe.results.groups import Group
from loupe.results.headline import has_value, why_nothing
from loupe.results.tables.record import Table
from loupe.results.visible_differences import no_ranks, visible_differences
from loupe.stats.ranks import Standings, standings


def standings_of(group: Group) -> Standings | None:
    """Every two engines compared, by their index in the group; None where the benchmark is gone, or they are many."""
    if group.benchmark is None or group.uncompared:
        return None
    runs = {str(index): entrant.counts() for index, entrant in enumerate(group.entrants)}
    apart = {str(index) for index, entrant in enumerate(group.entrants) if group.headline in entrant.left_out}
    return standings(group.analysis, runs, unranked=apart)


def ranks_of(group: Group, found: Standings | None) -> list[str]:
    """The rank of each engine by the headline measure, in the group's order; "–" where it has none."""
    ranks = found.ranks if found else {}
    return [str(ranks.get(str(index)) or "–") for index in range(len(group.entrants))]


def how_ranked(group: Group, found: Standings | None) -> str:
    """What a shared rank is, or why engines have none; "" where there is nothing to rank."""
    values = [result for result in group.results if has_value(result, group.headline)]
    if not values:
        if not group.results:
            return ""
        why = why_nothing(group.results[0], group.headline)
        return f"No ranks and no bars: {_title(group)} was not computed ({why})."
    if len(values) < 2:
        return ""
    if group.uncompared:
        return group.uncompared
    if found is None:
        return "No ranks: this benchmark is not installed here, so its engines cannot be compared."
    if found.untold:
        return no_ranks(_title(group))
    shared = "Engines share a rank if the difference between them may be due to chance"
    pairs = len(values) * (len(values) - 1) // 2
    said = [f"{shared}, corrected over all {pairs:,} pairs of them." if pairs > 1 else f"{shared}."]
    valued = {
        str(index): entrant.label
        for index, entrant in enumerate(group.entrants)
        if entrant.result and has_value(entrant.result, group.headline)
    }
    return " ".join([*said, *unranked_sentences(valued, found)])


def unranked_sentences(names: Mapping[str, str], found: Standings) -> list[str]:
    """Why runs with a value (their names by key) have no rank although others have one."""
    failed = [name for run, name in names.items() if run in found.failed]
    few = [name for run, name in names.items() if run not in found.failed and found.ranks[run] is None]
    said = [f"No rank for {listed(failed)}: every sample failed."] if failed else []
    if few and not found.untold:
        said.append(f"No rank for {listed(few)}: too few of the samples that the others have read.")
    return said


def _title(group: Group) -> str:
    return next((one.title or one.name for one in group.measures if one.name == group.headline), group.headline)


def visible_to_best(group: Group, compared: Standings | None) -> Table | None:
    """On few documents: what difference of each engine to the best one these could have shown at all."""
    scored = [index for index, entrant in enumerate(group.entrants) if entrant.result and not entrant.left_out]
    unit = next((measure.unit for measure in group.measures if measure.name == group.headline), "")
    if compared is None or not unit or not scored:
        return None
    best = min(scored, key=lambda index: list(compared.ranks).index(str(index)))
    against = {index: compared.minus(str(index), str(best)).get(group.headline) for index in scored if index != best}
    pairs = [
        (f"{group.entrants[index].label} minus {group.entrants[best].label}", found)
        for index, found in against.items()
        if found is not None and found.difference
    ]
    return next(iter(visible_differences(pairs, _title(group), unit)), None)
