"""Where the points go: the samples that cost an engine most, as the report lists them, and official figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loupe.quantities import percent, points
from loupe.results.costs import Costs
from loupe.results.groups import Group
from loupe.results.tables.record import Cell, Table
from loupe.types import Measure, Result

#: Samples listed for one engine.
LISTED = 12
#: The table of `figures` that holds an interval, and no figures of its own.
_INTERVAL = "interval"
#: A table with these is an interval, or a share with one that Loupe made itself.
_ENDS = {"low", "high"}
_ONE_OF = {"categories": "category", "types": "type"}


def loss_tables(group: Group) -> list[tuple[str, Table]]:
    """A table for each engine, where any of them loses something."""
    tables = [
        (
            entrant.label,
            loss_table(costs, group.measures, headline=group.headline)
            if entrant.result
            else Table(title="Not scored yet", rows=[]),
        )
        for entrant, costs in zip(group.entrants, group.costs, strict=True)
    ]
    return tables if any(table.rows for _, table in tables) else []


def loss_table(costs: Costs, measures: Sequence[Measure], *, headline: str, listed: int = LISTED) -> Table:
    """The dearest samples of one engine: what each costs and, by measure, the parts of it.

    The title says what they cost together, or why none is listed.
    """
    by_name = {measure.name: measure for measure in measures}
    titles = {measure.name: measure.title or measure.name for measure in measures}
    if not costs.measure:
        return Table(title=f"The cost of a single sample in {titles.get(headline, headline)} is unknown", rows=[])
    measure = by_name[costs.measure]
    if not costs.by_sample:
        return Table(title="Every sample is right: no points lost", rows=[])
    shown = list(costs.by_sample)[:listed]
    names = [m for m in measures if any(m.name in part for part in costs.parts.values()) and m.name != measure.name]
    largest = costs.by_sample[shown[0]]

    def parts(sample: str) -> list[str]:
        found = costs.parts.get(sample, {})
        return [in_unit(found[part.name], measure.unit) if part.name in found else "" for part in names]

    return Table(
        title=_sentence(costs, shown, measure) + ("" if measure.name == headline else f", by {titles[measure.name]}"),
        notes=[note] if (note := _without(costs, titles)) else [],
        header=("sample", "cost", *(titles[part.name] for part in names)),
        rows=[
            (
                sample,
                Cell(
                    text=in_unit(costs.by_sample[sample], measure.unit),
                    bar=round(100 * costs.by_sample[sample] / largest, 1),
                ),
                *parts(sample),
            )
            for sample in shown
        ],
    )


def _sentence(costs: Costs, shown: Sequence[str], measure: Measure) -> str:
    """What the samples that are shown cost together."""
    together = in_unit(sum(costs.by_sample[sample] for sample in shown), measure.unit)
    lost, count = in_unit(costs.lost, measure.unit, named=True), len(costs.by_sample)
    if count == 1:
        return f"The only faulty sample costs {together} of the {lost} lost"
    subject = f"These {len(shown)} of {count:,} faulty samples" if count > len(shown) else f"All {count} faulty samples"
    return f"{subject} cost {together} of the {lost} lost"


def _without(costs: Costs, titles: Mapping[str, str]) -> str:
    missing = ", ".join(titles[name] for name in costs.without)
    return f"{missing}: not computed, so its share of {titles[costs.measure]} is not included." if missing else ""


def in_unit(value: float, unit: str, *, named: bool = False) -> str:
    """A loss in the unit of its measure: fractions in points of a hundred."""
    if unit == "fraction":
        return points(value, 2) + (" points" if named else "")
    return f"{value:.4g}"


def official_table(results: Sequence[tuple[str, Result | None]]) -> Table:
    """The figures that an official evaluator prints: tables of numbers, pass rates, numbers."""
    columns: list[tuple[str, Mapping[str, str]]] = []
    for engine, result in results:
        figures = result.figures if result else {}
        for name, table in figures.items():
            if isinstance(table, dict) and not table.keys() >= _ENDS and all(map(_is_figure, table.values())):
                title = name.replace("_", " ")
                shown = {row: _figure(value) for row, value in table.items()}
                columns.append((title if len(results) == 1 else f"{engine}: {title}", shown))
        if rates := _rates(figures):
            columns.append((engine, rates))
    names = dict.fromkeys(name for _, table in columns for name in table)
    rows = [(name, *(table.get(name, "–") for _, table in columns)) for name in names]
    return Table(title="", header=("figure", *(title for title, _ in columns)), rows=rows)


def _rates(figures: Mapping[str, Any]) -> dict[str, str]:
    """Single numbers, the score with its own interval first, and tables of pass rates."""
    half = (figures.get(_INTERVAL) or {}).get("half_width")
    single = {name: value for name, value in figures.items() if _is_figure(value)}
    found = {name.replace("_", " "): _figure(value) for name, value in single.items()}
    if half is not None and "overall" in figures:
        found["overall"] = f"{percent(figures['overall'])} ± {points(half)}"
    if status := figures.get("official_status"):
        found["overall"] = f"{found.get('overall', '–')}; the official program prints {status}"
    for name, table in figures.items():
        rows = table.items() if isinstance(table, dict) else ()
        for row, value in rows if all(isinstance(value, dict) and "rate" in value for _, value in rows) else ():
            count = value.get("total", value.get("tests"))
            part = f"{value['passed']:,} of {count:,}" if "passed" in value else f"of {count:,}"
            found[f"{_ONE_OF.get(name, name)} {row}"] = f"{percent(value['rate'])} ({part})"
    return found


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, float | int) and not isinstance(value, bool))


def _figure(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.3f}" if isinstance(value, float) else "not computed"
