"""Published figures as tables: all that there are, beside measured ones, and against them. Never ranked among these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loupe.report.terminal import Section, format_range, format_value
from loupe.types import Measure, PublishedRow

if TYPE_CHECKING:
    from loupe.report.reproduction import Reproduction

NOT_MEASURED = "published by others, not measured here; samples and settings may differ (loupe reproduce)"
_MOST_COLUMNS = 6
#: Prompts may be pages long; JSON has them whole.
_LONGEST_CELL = 90


def format_published(value: float | None, unit: str) -> str:
    """A number with the digits that its source has: `94.62 %`, `0.039`."""
    if value is None:
        return "–"
    return f"{100 * value:.8g} %" if unit == "fraction" else f"{value:.8g}"


def listing(benchmark: str, rows: Sequence[PublishedRow], measures: Sequence[Measure]) -> list[Section]:
    """All rows of one benchmark, and below them their sources by number."""
    units = {measure.name: measure.unit for measure in measures}
    named = [(row.engines[0], row.name) for row in rows]
    return _tables(f"{benchmark}@{rows[0].version}", ("engine", "published as"), named, rows, units)


def published_sections(
    rows: Sequence[PublishedRow], units: Mapping[str, str], *, title: str = NOT_MEASURED
) -> list[Section]:
    """Rows for below a comparison: the values of the measures that `units` names, and the sources."""
    kept = [row for row in rows if row.values.keys() & units.keys()]
    return _tables(title, ("engine",), [(row.name,) for row in kept], kept, units) if kept else []


def origin(source: str, number: int) -> str:
    """What stands beside a figure of others: that it was published, or only told, and the number of its source."""
    return f"{'not measured here' if 'not published' in source else 'published'} [{number}]"


def source_numbers(rows: Sequence[PublishedRow]) -> dict[str, int]:
    """The sources of these rows, numbered from 1."""
    return {source: number for number, source in enumerate(dict.fromkeys(row.source for row in rows), 1)}


def _tables(
    title: str,
    header: tuple[str, ...],
    names: Sequence[tuple[str, ...]],
    rows: Sequence[PublishedRow],
    units: Mapping[str, str],
) -> list[Section]:
    """One table, or several where there are many measures; then the sources."""
    columns = [name for name in units if any(name in row.values for row in rows)]
    numbers = source_numbers(rows)
    found = []
    for start in range(0, len(columns), _MOST_COLUMNS):
        block = columns[start : start + _MOST_COLUMNS]
        lines = [
            (
                *name,
                *(format_published(row.values.get(each), units[each]) for each in block),
                f"[{numbers[row.source]}]",
            )
            for name, row in zip(names, rows, strict=True)
        ]
        found.append(Section(title="" if start else title, header=(*header, *block, "source"), rows=lines))
    listed = [(f"[{number}]", source) for source, number in numbers.items()]
    return [*found, Section(title="", rows=listed)]


def leaderboard_rows(rows: Sequence[PublishedRow], columns: Sequence[Measure]) -> list[tuple[str, str, list[str]]]:
    """(engine, where it is from, values) for the leaderboard of the report, best first by its first column.

    Rows without any value are left out.
    """
    numbers = source_numbers(rows)
    if columns:
        first, sign = columns[0].name, -1 if columns[0].higher_is_better else 1
        rows = sorted(rows, key=lambda row: sign * row.values.get(first, sign * math.inf))
    return [
        (
            row.name,
            origin(row.source, numbers[row.source]),
            [format_published(row.values.get(each.name), each.unit) for each in columns],
        )
        for row in rows
        if any(each.name in row.values for each in columns)
    ]


def reproduction_sections(found: Reproduction) -> list[Section]:
    """One published row against a run: numbers, settings that differ or are unknown, and what the source says."""
    row = found.published
    title = f"{row.name} on {row.benchmark}@{row.version}, published: {row.source}"
    header = ("measure", "published", "measured", "difference", "95 % interval", "published is")
    sections = [Section(title=title, header=header, rows=[_numbers(found, place) for place in range(len(row.values))])]
    apart = [
        (each.title, _short(each.published), _short(each.here), each.verdict)
        for each in found.settings
        if each.verdict != "same"
    ]
    if apart:
        settings = ("setting", "published", "here", "")
        sections.append(Section(title="settings that differ or are unknown", header=settings, rows=apart))
    same = [each.title for each in found.settings if each.verdict == "same"]
    notes = [("the same in both", ", ".join(same))] if same else []
    notes += [("failed here", f"{found.failed:,} of {found.total:,}, scored as empty answers")] if found.failed else []
    notes += [("note", note) for note in row.notes]
    return [*sections, Section(title="", rows=notes)] if notes else sections


def _numbers(found: Reproduction, place: int) -> tuple[str, ...]:
    one = found.measures[place]
    measured, difference = one.measured, one.difference
    signed = "–"
    if difference is not None:
        signed = f"{100 * difference:+.2f}" if one.unit == "fraction" else f"{difference:+.4g}"
    return (
        one.measure,
        format_published(one.published, one.unit),
        format_value(measured.value, one.unit) if measured else "–",
        signed,
        format_range(measured.low, measured.high, one.unit) if measured else "",
        {True: "inside", False: "outside", None: "–"}[one.inside],
    )


def _short(text: str) -> str:
    flat = " ".join(text.split()) or "unknown"
    return flat if len(flat) <= _LONGEST_CELL else flat[: _LONGEST_CELL - 1] + "…"
