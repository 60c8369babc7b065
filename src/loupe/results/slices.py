"""All slices of one tag as a table: every measure of every value, with how many units it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loupe.errors import UsageError, did_you_mean
from loupe.results.headline import has_value, why_nothing
from loupe.results.scored_here import marked
from loupe.results.sections import NOTHING_HERE, format_estimate, format_value
from loupe.results.tables.record import Table
from loupe.types import Estimate, Result


def slices_section(result: Result, tag: str) -> Table:
    """A row for each value of a tag, the largest first. Raises UsageError for a tag without slices."""
    values = result.slices.get(tag)
    if not values:
        listed = ", ".join(sorted(result.slices)) or "none"
        raise UsageError(
            f"no slices by {tag!r}{did_you_mean(tag, result.slices)}", hint=f"use --by with one of: {listed}"
        )
    names = [name for name in result.measures if any(name in measures for measures in values.values())]
    rows = [_row(result, value, measures, names) for value, measures in values.items()]
    rows.sort(key=lambda row: -int(row[1].replace(",", "")))
    header = (tag, "n", *(f"{name} {'↑' if result.directions.get(name, True) else '↓'}" for name in names))
    title = f"{marked(result.engine, result)}: slices by {tag}"
    title += " (in brackets over how many, where these are fewer than n)"
    if empty := [
        name for place, name in enumerate(names, 2) if any(row[place] == format_value(None, "") for row in rows)
    ]:
        why = {name: NOTHING_HERE if has_value(result, name) else why_nothing(result, name) for name in empty}
        title += f"; –: {', '.join(dict.fromkeys(why.values()))}"
    return Table(title=title, header=header, rows=rows)


def _row(result: Result, value: str, measures: Mapping[str, Estimate], names: Sequence[str]) -> tuple[str, ...]:
    most = max((one.n for one in measures.values()), default=0)
    cells = []
    for name in names:
        one = measures.get(name, Estimate(value=None))
        fewer = f" ({one.n:,})" if 0 < one.n < most else ""
        cells.append(format_estimate(one, result.units.get(name, "fraction")) + fewer)
    return (value, f"{most:,}", *cells)
