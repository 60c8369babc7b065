"""Published figures as tables: all that there are, beside measured ones, and against them. Never ranked among these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loupe.results.deciding import DECIDING
from loupe.results.sections import format_estimate, format_range
from loupe.results.tables.record import Table
from loupe.types import Measure, PublishedRow

if TYPE_CHECKING:
    from loupe.results.reproduction import Reproduction, Setting

NOT_MEASURED = "published figures, not measured here; samples and settings may differ (loupe reproduce)"
#: The line below published rows that lack a value.
NO_VALUE = ("–", "the source has no such value")
_MOST_COLUMNS = 6
#: Prompts may be pages long; JSON has them whole.
_LONGEST_CELL = 90


def format_published(row: PublishedRow, measure: str, unit: str) -> str:
    """A number of a row with the digits that its source has: `94.62 %`, `0.039`, `838 / 1,000`."""
    value = row.values.get(measure)
    if value is None:
        return "–"
    samples = row.settings.get("samples", "")
    whole = f" / {int(samples):,}" if unit == "count" and samples.isdecimal() else ""
    return f"{100 * value:.8g} %" if unit == "fraction" else f"{value:.8g}{whole}"


def listing(benchmark: str, rows: Sequence[PublishedRow], measures: Sequence[Measure]) -> list[Table]:
    """All rows of one benchmark, and below them their sources by number."""
    units = {measure.name: measure.unit for measure in measures}
    named = [(row.engines[0], row.name) for row in rows]
    return _tables(f"{benchmark}@{rows[0].version}", ("engine", "name in the source"), named, rows, units)


def published_sections(
    rows: Sequence[PublishedRow], units: Mapping[str, str], *, title: str = NOT_MEASURED
) -> list[Table]:
    """Rows for below a comparison: the values of the measures that `units` names, and the sources."""
    kept = [row for row in rows if row.values.keys() & units.keys()]
    return _tables(title, ("engine",), [(row.name,) for row in kept], kept, units) if kept else []


def origin(row: PublishedRow, number: int) -> str:
    """What stands beside a figure of others: that it was published, or only told, and the number of its source."""
    return f"{_kind(row)} {_cited(row, number)}"


def _cited(row: PublishedRow, number: int) -> str:
    return f"[{number}], not reproducible" if row.not_reproducible else f"[{number}]"


def _kind(row: PublishedRow) -> str:
    return "published" if row.published else "unpublished"


def source_numbers(rows: Sequence[PublishedRow]) -> dict[str, int]:
    """The sources of these rows, numbered from 1."""
    return {source: number for number, source in enumerate(dict.fromkeys(map(source_of, rows)), 1)}


def source_of(row: PublishedRow) -> str:
    """Where a row is from; of one that nobody can look up it is said."""
    return row.source if row.published else f"{row.source}, not published"


def _tables(
    title: str,
    header: tuple[str, ...],
    names: Sequence[tuple[str, ...]],
    rows: Sequence[PublishedRow],
    units: Mapping[str, str],
) -> list[Table]:
    """One table, or several where there are many measures; then the sources."""
    columns = [name for name in units if any(name in row.values for row in rows)]
    numbers = source_numbers(rows)
    found = []
    for start in range(0, len(columns), _MOST_COLUMNS):
        block = columns[start : start + _MOST_COLUMNS]
        lines = [
            (
                *name,
                *(format_published(row, each, units[each]) for each in block),
                _cited(row, numbers[source_of(row)]),
            )
            for name, row in zip(names, rows, strict=True)
        ]
        found.append(Table(title="" if start else title, header=(*header, *block, "source"), rows=lines))
    listed = [(f"[{number}]", source) for source, number in numbers.items()]
    if any(each not in row.values for row in rows for each in columns):
        listed.append(NO_VALUE)
    return [*found, Table(title="", rows=listed)]


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
            origin(row, numbers[source_of(row)]),
            [format_published(row, each.name, each.unit) for each in columns],
        )
        for row in rows
        if any(each.name in row.values for each in columns)
    ]


def reproduction_sections(found: Reproduction) -> list[Table]:
    """One row of others against a run: numbers, settings that differ or are unknown, and what the source says.

    Without a run there is nothing to put beside the numbers, and no column for it.
    """
    row, kind = found.published, _kind(found.published)
    title = f"{row.name} on {row.benchmark}@{row.version}, {kind}: {row.source}"
    header = ("measure", kind, "measured", "difference", "95 % interval", f"{kind} is")
    known = len(header) if found.run else 2
    numbers = [_numbers(found, place)[:known] for place in range(len(row.values))]
    sections = [Table(title=title, header=header[:known], rows=numbers)]
    settings = ("setting", kind, "here", "")
    first = [_shown(each) for each in found.settings if each.name in DECIDING]
    if first:
        sections.append(Table(title="what decides most gaps", header=settings, rows=first))
    others = [each for each in found.settings if each.name not in DECIDING]
    apart = [_shown(each) for each in others if each.verdict != "same" and each.published]
    if apart:
        sections.append(Table(title="settings that differ or are unknown", header=settings, rows=apart))
    notes = [("a part only", f"the run has {found.part} samples, so counts cannot be compared")] if found.part else []
    notes += [("not reproducible", row.not_reproducible)] if row.not_reproducible else []
    same = [each.title for each in others if each.verdict == "same"]
    notes += [("the same in both", ", ".join(same))] if same else []
    untold = [each.title for each in others if not each.published]
    notes += [("the source does not say", ", ".join(untold))] if untold else []
    notes += [("failed here", f"{found.failed:,} of {found.total:,}, scored as empty answers")] if found.failed else []
    notes += [("note", note) for note in row.notes]
    return [*sections, Table(title="", rows=notes)] if notes else sections


def _shown(setting: Setting) -> tuple[str, str, str, str]:
    return setting.title, _short(setting.published), _short(setting.here), setting.verdict


def _numbers(found: Reproduction, place: int) -> tuple[str, ...]:
    one = found.measures[place]
    measured, difference = one.measured, one.difference
    signed = "–"
    if difference is not None:
        signed = f"{100 * difference:+.2f}" if one.unit == "fraction" else f"{difference:+.4g}"
    return (
        one.measure,
        format_published(found.published, one.measure, one.unit),
        format_estimate(measured, one.unit) if measured else f"– ({one.not_computed or 'not measured'})",
        signed,
        format_range(measured.low, measured.high, one.unit) if measured else "",
        {True: "inside", False: "outside", None: "–"}[one.inside],
    )


def _short(text: str) -> str:
    flat = " ".join(text.split()) or "unknown"
    return flat if len(flat) <= _LONGEST_CELL else flat[: _LONGEST_CELL - 1] + "…"
