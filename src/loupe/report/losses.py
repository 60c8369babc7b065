"""Where the points go: the samples that cost an engine most, as the report lists them, and official figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loupe.report.collect import Group
from loupe.report.costs import Costs
from loupe.types import Measure, Result

#: Samples listed for one engine.
LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """One sample: what it costs, its share of the largest cost (for the bar), and the parts by measure."""

    sample: str
    cost: str
    bar: float
    parts: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTable:
    """The dearest samples of one engine and, in a sentence, what they cost together."""

    engine: str
    sentence: str
    note: str
    parts: list[str]
    rows: list[LossRow]


def loss_tables(group: Group) -> list[LossTable]:
    """One table for each engine that loses anything, where more than one sample was scored."""
    headline = next((measure for measure in group.measures if measure.name == group.headline), None)
    if headline is None:
        return []
    return [
        _table(entrant.label, costs, headline, group.measures)
        for entrant, costs in zip(group.entrants, group.costs, strict=True)
        if len(costs.by_sample) > 1
    ]


def _table(engine: str, costs: Costs, headline: Measure, measures: Sequence[Measure]) -> LossTable:
    shown = list(costs.by_sample)[:LISTED]
    together = sum(costs.by_sample[sample] for sample in shown)
    names = [m for m in measures if any(m.name in part for part in costs.parts.values()) and m.name != headline.name]
    titles = {measure.name: measure.title or measure.name for measure in measures}
    largest = costs.by_sample[shown[0]]
    missing = ", ".join(titles[name] for name in costs.without)
    count = len(costs.by_sample)
    subject = f"These {len(shown)} of {count:,} faulty samples" if count > len(shown) else f"All {count} faulty samples"
    return LossTable(
        engine=engine,
        sentence=f"{subject} cost {points(together, headline)} of the {points(costs.lost, headline, unit=True)} lost",
        note=f"{missing}: not computed, so its part of the {titles[headline.name]} is not in here." if missing else "",
        parts=[titles[measure.name] for measure in names],
        rows=[
            LossRow(
                sample=sample,
                cost=points(costs.by_sample[sample], headline),
                bar=round(100 * costs.by_sample[sample] / largest, 1),
                parts=[
                    points(costs.parts[sample][measure.name], headline) if measure.name in costs.parts[sample] else ""
                    for measure in names
                ],
            )
            for sample in shown
        ],
    )


def points(value: float, measure: Measure, *, unit: bool = False) -> str:
    """A loss in the unit of its measure: fractions in points of a hundred."""
    if measure.unit == "fraction":
        return f"{100 * value:.2f}" + (" points" if unit else "")
    return f"{value:.4g}"


def official_rows(results: Sequence[tuple[str, Result | None]]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Heads and rows of the figures that an official evaluator prints: every plain table of numbers in `figures`."""
    columns: list[tuple[str, Mapping[str, object]]] = []
    for engine, result in results:
        for name, figures in (result.figures if result else {}).items():
            if isinstance(figures, dict) and all(isinstance(v, float | int | None) for v in figures.values()):
                title = name.replace("_", " ")
                columns.append((title if len(results) == 1 else f"{engine}: {title}", figures))
    names = dict.fromkeys(name for _, figures in columns for name in figures)
    return [title for title, _ in columns], [(name, [_figure(f.get(name)) for _, f in columns]) for name in names]


def _figure(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float | int) else "not computed"
