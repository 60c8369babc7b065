"""Results and comparisons as tables for the terminal: aligned and coloured, or tab-separated.

Fractions are shown in percent here, as in every report; files and JSON hold fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loupe.report.control_characters import printable
from loupe.report.group_titles import shown_version
from loupe.report.speed import speed_rows
from loupe.report.table_width import column_widths, fitted, is_of_numbers
from loupe.types import FAILED, Estimate, FailedAre, Result

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

#: A larger share of failed samples than this is shown in red: the numbers then say little about the engine.
ALARMING = 0.05
WORST_SLICES = 5
LISTED_FAILURES = 5

_FAILED_ARE: Mapping[FailedAre, str] = {
    "empty": "scored as empty",
    "left out": "left out of the official numbers",
    "partly left out": "some scored as empty, others left out of the official numbers",
}
_NOTHING = "nothing here to measure"
_WORDS = {
    "timeout": "no answer in time",
    "error": "ended with an error",
    "rejected": "refused by the engine",
    "missing": "no answer is there",
    "scorer": "scoring failed",
    "empty": "answered with nothing",
    "truncated": "cut off at the token limit",
    "repeated": "stuck in a loop",
}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One table: `rows` of cells below `header`; `alarm` asks for red. A terminal marks the row of the `winner`."""

    title: str
    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    alarm: bool = False
    winner: int | None = None


def result_sections(result: Result, worst: Section | None = None) -> list[Section]:
    """Everything a person should see of one result, most important first; `worst` are its worst samples."""
    found = [
        _measures(result),
        *_below_measures(result),
        _not_computed(result),
        worst,
        _worst_slices(result),
        _not_as_it_is(result),
        _failures(result),
        _beside(result),
    ]
    if result.warnings:
        found.append(Section(title="warnings", rows=[(warning,) for warning in result.warnings], alarm=True))
    return [section for section in found if section is not None]


def format_value(value: float | None, unit: str) -> str:
    """`91.23 %` for a fraction, up to three decimals for a number, `–` for what was not computed."""
    if value is None:
        return "–"
    return f"{round(100 * value, 2) + 0.0:.2f} %" if unit == "fraction" else f"{value:,.3f}".rstrip("0").rstrip(".")


def format_margin(estimate: Estimate, unit: str) -> str:
    """Half of the 95 % interval's width, as `± 1.20`; empty where there is no interval.

    Where all of the interval lies on one side of the value, its ends instead: `0.00 % ± 42.09` would be nonsense.
    """
    if estimate.low is None or estimate.high is None:
        return ""
    value = format_value(estimate.value, unit)
    if (format_value(estimate.low, unit) == value) != (format_value(estimate.high, unit) == value):
        return format_range(estimate.low, estimate.high, unit)
    half = (estimate.high - estimate.low) / 2
    return f"± {100 * half:.2f}" if unit == "fraction" else f"± {half:.3g}"


def format_range(low: float | None, high: float | None, unit: str) -> str:
    """The interval itself, as `88.10 … 92.40`."""
    if low is None or high is None:
        return ""
    return f"{format_value(low, unit)} … {format_value(high, unit)}".replace(" %", "")


def format_headline(result: Result) -> str:
    """The headline measure with its margin, as `overall 91.23 % ± 1.20` or `overall 0.00 % [0.00 … 84.19]`."""
    unit = result.units.get(result.headline, "fraction")
    estimate = result.measures.get(result.headline, Estimate(value=None))
    margin = format_margin(estimate, unit)
    margin = f"[{margin}]" if "…" in margin else margin
    return f"{result.headline} {format_value(estimate.value, unit)} {margin}".rstrip()


def failed_count(result: Result) -> int:
    """Samples that scored as an empty answer because there was none, or because its scorer failed."""
    return sum(result.outcomes.get(name, 0) for name in FAILED) + _broken(result)


def unread_count(result: Result) -> int:
    """Samples that the run did not come to: they are in no number, unlike answers that are missing."""
    return result.outcomes.get("missing", 0) - sum(failure.outcome == "missing" for failure in result.failures)


def _broken(result: Result) -> int:
    return sum(failure.outcome == "scorer" for failure in result.failures)


def _measures(result: Result) -> Section:
    computed = [name for name, estimate in result.measures.items() if estimate.value is not None]
    names = [result.headline, *(name for name in computed if name != result.headline)]
    rows = []
    for name in names:
        unit, estimate = result.units.get(name, "fraction"), result.measures.get(name, Estimate(value=None))
        arrow = "↑" if result.directions.get(name, True) else "↓"
        margin, interval = format_margin(estimate, unit), format_range(estimate.low, estimate.high, unit)
        # Where the margin is given by its ends, they stand in the next column already.
        margin = "" if margin == interval else margin
        rows.append((f"{name} {arrow}", format_value(estimate.value, unit), margin, interval, f"{estimate.n:,}"))
    unread, count = unread_count(result), f"{result.total:,} sample{'s' if result.total != 1 else ''}"
    read = f"{result.total - unread:,} of {count}: the rest is not read yet" if unread else count
    title = f"{result.engine} on {result.benchmark}@{shown_version(result.version)}, {read}"
    return Section(title=title, header=("measure", "value", "±", "95 % interval", "n"), rows=rows)


def _below_measures(result: Result) -> list[Section]:
    """The row of the official table; that this is a part of the published set, or that drafts are its truth."""
    from loupe.report.unverified import accepted_drafts  # brings in the metrics, which `--help` can do without

    found = [Section(title="", rows=[(result.official,)])] if result.official else []
    said = [(line,) for line in (part_of_published(result), accepted_drafts([result])) if line]
    return [*found, Section(title="", rows=said, alarm=True)] if said else found


def part_of_published(result: Result) -> str:
    """That a result is not over the whole of the published set; "" where it is, or where its size is unknown."""
    if result.total >= result.published_total:
        return ""
    whole = f"{result.total:,} of the {result.published_total:,} samples"
    name = f"{result.benchmark}@{shown_version(result.version)}"
    return f"only {whole} of {name}: no number to hold beside published ones"


def _not_computed(result: Result) -> Section | None:
    """Measures that this run has no value of, so that they do not fill the table, with the reason."""
    reasons: dict[str, list[str]] = {}
    for name, estimate in result.measures.items():
        reason = result.not_computed.get(name, "" if name == result.headline else _NOTHING)
        if estimate.value is None and reason:
            reasons.setdefault(reason, []).append(name)
    if set(reasons) == {_NOTHING}:
        return Section(title=f"not computed: {_NOTHING}", rows=[(", ".join(reasons[_NOTHING]),)])
    rows = [(", ".join(names), reason) for reason, names in reasons.items()]
    return Section(title="not computed", rows=rows) if rows else None


def _worst_slices(result: Result) -> Section | None:
    """The slices that are worse than the whole, worst first; one sample alone is no slice unless all are that small.

    What is left out for that is counted, and stands in `loupe score RUN --by TAG`.
    """
    name = _slice_measure(result)
    unit, sign = result.units.get(name, "fraction"), 1 if result.directions.get(name, True) else -1
    whole = result.measures.get(name, Estimate(value=None)).value
    found: list[tuple[float, str, Estimate]] = []
    without = 0
    for tag, values in result.slices.items():
        for value, measures in values.items() if len(values) > 1 else ():
            estimate = measures.get(name)
            if estimate is not None and estimate.value is not None:
                found.append((estimate.value, f"{tag} = {value}", estimate))
            elif any(name in other for other in values.values()):
                without += 1
    larger = [item for item in found if item[2].n > 1]
    single = len(found) - len(larger) if larger else 0
    found = larger or found
    found = [item for item in found if whole is None or sign * item[0] < sign * whole]
    if not found:
        return None
    found.sort(key=lambda item: sign * item[0])
    rows = [
        (label, format_value(value, unit), format_margin(estimate, unit), f"{estimate.n:,}")
        for value, label, estimate in found[:WORST_SLICES]
    ]
    left_out = [f"{len(found) - len(rows):,} more are worse than the whole"] if len(found) > len(rows) else []
    counts = {"of one sample": single, f"without any {name}": without}
    kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    left_out += [f"left out: {' and '.join(kinds)}"] if kinds else []
    told = f" ({'; '.join([*left_out, 'all: loupe score RUN --by TAG'])})" if left_out else ""
    return Section(title=f"worst slices by {name}{told}", header=("slice", "value", "±", "n"), rows=rows)


def _slice_measure(result: Result) -> str:
    """The measure by which slices are compared: a headline that is a sum of points grows with the size of a slice."""
    order = [result.headline, *result.measures]
    names = [name for name in order if result.units.get(name, "fraction") == "fraction"]
    return next((name for name in names if _has_value(result, name)), names[0] if names else result.headline)


def _has_value(result: Result, name: str) -> bool:
    return name in result.measures and result.measures[name].value is not None


def _not_as_it_is(result: Result) -> Section | None:
    unread, total = unread_count(result), max(result.total, 1)
    failed = failed_count(result) - unread
    rows = []
    if unread:
        rows.append(
            ("not read", f"{unread:,} of {result.total:,}", f"{100 * unread / total:.1f} %", "in no number yet")
        )
    if failed:
        counted = _FAILED_ARE[result.failed_are]
        rows.append(("failed", f"{failed:,} of {result.total:,}", f"{100 * failed / total:.1f} %", counted))
    counts = {**result.outcomes, "scorer": _broken(result)}
    counts["missing"] = counts.get("missing", 0) - unread
    # Nothing is the right answer to a page with nothing on it.
    counts["empty"] = counts.get("empty", 0) - int(result.diagnostics.get("empty_on_blank", 0))
    for name, words in _WORDS.items():
        count = counts.get(name, 0)
        if count:
            label = f"  {name}" if name in (*FAILED, "scorer") else name
            rows.append((label, f"{count:,} of {result.total:,}", f"{100 * count / total:.1f} %", words))
    alarm = failed + unread > ALARMING * result.total
    return Section(title="not answered as asked", rows=rows, alarm=alarm) if rows else None


def _failures(result: Result) -> Section | None:
    rows = [(item.sample, item.outcome, _one_line(item.error)) for item in result.failures[:LISTED_FAILURES]]
    hidden = len(result.failures) - len(rows)
    if hidden > 0:
        rows.append((f"… and {hidden:,} more", "", "result.json lists them all"))
    return Section(title="first failures", rows=rows) if rows else None


def _beside(result: Result) -> Section | None:
    rows = []
    for name, value in result.diagnostics.items():
        if not value or name in ("failed", *result.outcomes) or name.endswith("_share"):
            continue
        share = result.diagnostics.get(f"{name}_share")
        text = format_diagnostic(name, value)
        rows.append((name.replace("_", " "), text if share is None else f"{text} ({100 * share:.1f} %)"))
    rows += speed_rows(result)
    return Section(title="beside the score", rows=rows) if rows else None


def format_diagnostic(name: str, value: float) -> str:
    """A number beside the score with its unit: rates in percent, lengths (means over the samples) in characters."""
    if name.endswith("_rate"):
        return format_value(value, "fraction")
    return f"{value:,.0f} characters" if name.endswith("_length") else f"{value:,.4g}"


def _one_line(text: str, longest: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def tab_separated(sections: Iterable[Section]) -> Iterator[str]:
    """The same tables as lines of tab-separated cells; a title stands alone on its line, after `#`."""
    for section in sections:
        if section.title:
            yield f"# {printable(section.title)}"
        for row in (section.header, *section.rows) if section.header else section.rows:
            # A sentence that stands alone is no cell of a table, and is kept whole.
            yield "\t".join(_one_line(printable(cell), 1000 if len(row) == 1 else 160) for cell in row)


def rich_tables(sections: Iterable[Section], width: int) -> Iterator[RenderableType]:
    """The tables for a terminal of this width. Cells are never read as markup: sample ids and errors are not ours."""
    from rich.text import Text

    for section in fitted(map(_starred, sections), width):
        if section.title:
            yield Text(printable(section.title), style="bold red" if section.alarm else "bold")
        yield _rich_table(section, width)
        yield Text()


def _starred(section: Section) -> Section:
    """With a star before the winner's row, for terminals without bold letters; programs read tables without it."""
    if section.winner is None:
        return section
    rows = [(f"★ {row[0]}", *row[1:]) if at == section.winner else row for at, row in enumerate(section.rows)]
    return replace(section, rows=rows)


def _rich_table(section: Section, width: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD if section.header else None, pad_edge=False, show_header=bool(section.header))
    widths = column_widths(section, width) if section.header else None
    for column in range(max((len(row) for row in (section.header, *section.rows)), default=0)):
        cells = [row[column] for row in section.rows if column < len(row)]
        name = section.header[column] if section.header else ""
        numbers = column > 0 and is_of_numbers(cells)
        fixed = widths[column] if widths else None
        grid.add_column(name, justify="right" if numbers else "left", overflow="fold", min_width=fixed, max_width=fixed)
    style = "red" if section.alarm else ""
    for at, row in enumerate(section.rows):
        row_style = "bold green" if at == section.winner else style
        grid.add_row(*(Text(printable(cell), style=row_style) for cell in row))
    return grid
