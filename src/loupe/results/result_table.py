"""Several results of one benchmark as one table, in the manner of a leaderboard, with published rows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loupe.quantities import points
from loupe.results.headline import headline_of, why_nothing
from loupe.results.published import NO_VALUE, format_published, origin, source_numbers, source_of
from loupe.results.scored_here import where_scored
from loupe.results.sections import failed_cell, failed_count, format_margin, format_value, part_of_published
from loupe.results.tables.record import Table
from loupe.types import Estimate, PublishedRow, Result

#: Columns that are left out where they say nothing: of these results none has it, or nobody has published any.
_OPTIONAL = {"source": "here", "±": "–", "official ±": "–", "failed": "–"}


def candidate_sections(
    results: Sequence[Result], published: Sequence[PublishedRow] = (), measure: str = ""
) -> list[Table]:
    """List a row for each result, then published ones, marked and with their source below; first the headline alone.

    Fractions are in percent with one decimal, as leaderboards have them. `official ±` is half of the interval as the
    benchmark itself defines it, where it has one of its own.
    """
    (headline, note), units = headline_of(results, measure), results[0].units
    computed = {name for result in results for name, one in result.measures.items() if one.value is not None}
    named = computed | {name for row in published for name in row.values}
    columns = [headline, *(name for name in results[0].measures if name in named and name != headline)]
    rows = [_own_row(result, columns) for result in results]
    sources = source_numbers(published)
    rows += [_published_row(row, columns, units, sources[source_of(row)]) for row in published]
    titles = [_title(name, results[0]) for name in columns]
    header = ("engine", "source", titles[0], "±", "official ±", "failed")
    found = [_without_empty_columns(header, [row[: len(header)] for row in rows])]
    found += [Table(title="", rows=[(note,)])] if note else []
    if len(titles) > 1:
        parts = [(row[0], *row[len(header) :]) for row in rows]
        found.append(Table(title="", header=("engine", *titles[1:]), rows=parts))
    if sources:
        listed = [(f"[{number}]", text) for text, number in sources.items()]
        listed += [NO_VALUE] if any(name not in row.values for row in published for name in columns) else []
        listed += [("here", part) for part in dict.fromkeys(map(part_of_published, results)) if part]
        found.append(Table(title="published figures, not measured here", rows=listed))
    return found


def _title(name: str, result: Result) -> str:
    arrow = "↑" if result.directions.get(name, True) else "↓"
    return f"{name.replace('_', ' ')} {arrow}"


def _without_empty_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    kept = [
        column
        for column, name in enumerate(header)
        if name not in _OPTIONAL or any(row[column] != _OPTIONAL[name] for row in rows)
    ]
    return Table(
        title="", header=[header[column] for column in kept], rows=[[row[column] for column in kept] for row in rows]
    )


def _own_row(result: Result, columns: Sequence[str]) -> tuple[str, ...]:
    estimates = [result.measures.get(name, Estimate(value=None)) for name in columns]
    first, *others = [
        _cell(one.value, result.units.get(name), of=one.n)
        if one.value is not None
        else f"– ({why_nothing(result, name)})"
        for name, one in zip(columns, estimates, strict=True)
    ]
    margin = format_margin(estimates[0], result.units.get(columns[0], "fraction")).removeprefix("± ")
    official = result.figures.get("interval", {}).get("half_width")
    failed = failed_count(result)
    lost = failed_cell(failed, result.total, result.outcomes.get("refused", 0)) if failed else "–"
    return (
        result.engine,
        where_scored(result),
        first,
        margin or "–",
        _points(official),
        lost,
        *others,
    )


def _published_row(row: PublishedRow, columns: Sequence[str], units: Mapping[str, str], source: int) -> tuple[str, ...]:
    first, *others = [_published_cell(row, name, units.get(name)) for name in columns]
    return (row.name, origin(row, source), first, "–", _points(row.half_width), "–", *others)


def _cell(value: float | None, unit: str | None, *, of: int = 0) -> str:
    if value is None or unit in ("number", "count"):
        return format_value(value, unit or "number", of=of)
    return points(value)


def _published_cell(row: PublishedRow, measure: str, unit: str | None) -> str:
    if unit == "count":
        return format_published(row, measure, unit)
    return _cell(row.values.get(measure), unit)


def _points(half_width: float | None) -> str:
    return "–" if half_width is None else points(half_width)
