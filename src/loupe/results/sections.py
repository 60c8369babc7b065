"""Results and comparisons as tables of texts.

Fractions are shown in percent here, as in every report; files and JSON hold fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from loupe.quantities import counted, percent
from loupe.results.group_titles import listed, shown_version
from loupe.results.scored_here import marked
from loupe.results.speed import speed_rows
from loupe.results.tables.record import Table, one_line
from loupe.types import FAILED, Estimate, FailedAre, Result

#: A larger share of failed samples than this is shown in red: the numbers then say little about the engine.
ALARMING = 0.05
WORST_SLICES = 5
LISTED_FAILURES = 5

_FAILED_ARE: Mapping[FailedAre, str] = {
    "empty": "scored as empty",
    "left out": "left out of the official numbers",
    "partly left out": "some scored as empty, others left out of the official numbers",
}
#: Why a value has no interval.
FEW = "too few pages or documents, or all alike"
#: Why a measure has no value, if its benchmark does not say.
NOTHING_HERE = "nothing here to measure"
_WORDS = {
    "refused": "refused, or blocked by a content filter",
    "unfinished": "cut off before the answer began",
    "timeout": "no answer in time",
    "error": "ended with an error",
    "rejected": "request rejected",
    "missing": "no answer",
    "scorer": "scoring failed",
    "empty": "empty answer",
    "truncated": "cut off at the token limit",
    "repeated": "stuck in a loop",
}


def result_sections(result: Result, worst: Table | None = None, note: str = "") -> list[Table]:
    """List everything a person should see of one result, most important first.

    `worst` are its worst samples, and `note` says why its headline is not the benchmark's.
    """
    found = [
        _measures(result),
        _without_interval(result),
        *_below_measures(result, note),
        _not_computed(result),
        worst,
        _worst_slices(result),
        _not_as_it_is(result),
        _failures(result),
        _beside(result),
    ]
    if result.warnings:
        found.append(Table(title="warnings", rows=[(warning,) for warning in result.warnings], alarm=True))
    return [section for section in found if section is not None]


def format_value(value: float | None, unit: str, *, of: int = 0) -> str:
    """`91.23 %` for a fraction, up to three decimals for a number, `–` for what was not computed.

    A count says what it is out of, where that is known: `838 / 1,000`.
    """
    if value is None:
        return "–"
    if unit == "fraction":
        return percent(value, 2)
    decimals = 1 if unit == "count" else 3
    number = f"{round(value, decimals) + 0.0:,.{decimals}f}".rstrip("0").rstrip(".")
    return f"{number} / {of:,}" if unit == "count" and of else number


def format_estimate(estimate: Estimate, unit: str) -> str:
    """The value of an estimate; a count out of all that it was counted over."""
    return format_value(estimate.value, unit, of=estimate.n)


def format_margin(estimate: Estimate, unit: str) -> str:
    """Half of the 95 % interval's width, as `± 1.20`; empty where there is no interval.

    Where a ± would reach beyond what the interval allows, its ends instead: neither `0.00 % ± 42.09` nor
    `99.66 % ± 0.62` can be.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    half = (estimate.high - estimate.low) / 2
    if _is_beyond(estimate.value, half, estimate, unit):
        return format_range(estimate.low, estimate.high, unit)
    return f"± {100 * half:.2f}" if unit == "fraction" else f"± {half:.3g}"


def margin_heading(cells: Iterable[str]) -> str:
    """What stands above such cells: `±`, or that some or all of them are the ends of an interval.

    >>> margin_heading(["± 1.20", "98.67 … 99.92"])
    '± or 95 % interval'
    """
    kinds = {cell.startswith("±") for cell in cells if cell}
    return "±" if kinds <= {True} else "95 % interval" if kinds == {False} else "± or 95 % interval"


def _is_beyond(value: float, half: float, known: Estimate, unit: str) -> bool:
    """Whether value ± half leaves the range that the interval keeps to, or all of the interval is on one side."""
    low, high = known.low or 0.0, known.high or 0.0
    shown = format_value(value, unit)
    if (format_value(low, unit) == shown) != (format_value(high, unit) == shown):
        return True
    most = {"fraction": 1.0, "count": float(known.n)}.get(unit, math.inf)
    return value - half < 0 <= low or high <= most < value + half


def format_range(low: float | None, high: float | None, unit: str) -> str:
    """The interval itself, as `88.10 … 92.40`."""
    if low is None or high is None:
        return ""
    return f"{format_value(low, unit)} … {format_value(high, unit)}".replace(" %", "")


def failed_count(result: Result) -> int:
    """Samples that scored as an empty answer because there was none, or because its scorer failed."""
    return sum(result.outcomes.get(name, 0) for name in FAILED) + _broken(result)


def failed_cell(failed: int, total: int, refused: int) -> str:
    """Return how many samples failed, as `3 of 12`, and how many of them the engine refused, with their rate.

    >>> failed_cell(3, 12, 2)
    '3 of 12 (refused 2, 16.7 %)'
    """
    of = f" (refused {refused:,}, {percent(refused / max(total, 1))})" if refused else ""
    return f"{failed:,} of {total:,}{of}"


def unread_count(result: Result) -> int:
    """Samples that the run did not come to: they are in no number, unlike answers that are missing."""
    return result.outcomes.get("missing", 0) - sum(failure.outcome == "missing" for failure in result.failures)


def _broken(result: Result) -> int:
    return sum(failure.outcome == "scorer" for failure in result.failures)


def says_twice(results: Iterable[Result], name: str) -> bool:
    """Whether a measure is the mean of one: an `overall` that is the headline again.

    It has as many units, or, where a composite counts groups of samples instead, the same interval.
    """
    return name == "overall" and all(_is_headline_again(result, name) for result in results)


def _is_headline_again(result: Result, name: str) -> bool:
    one, headline = (result.measures.get(each, Estimate(value=None)) for each in (name, result.headline))
    same = one.n == headline.n or (one.low, one.high) == (headline.low, headline.high)
    return result.headline != name and one.value == headline.value and same


def _measures(result: Result) -> Table:
    computed = [
        name
        for name, estimate in result.measures.items()
        if estimate.value is not None and not says_twice([result], name)
    ]
    names = [result.headline, *(name for name in computed if name != result.headline)]
    rows: list[tuple[str, ...]] = []
    for name in names:
        unit, estimate = result.units.get(name, "fraction"), result.measures.get(name, Estimate(value=None))
        arrow = "↑" if result.directions.get(name, True) else "↓"
        margin, interval = format_margin(estimate, unit), format_range(estimate.low, estimate.high, unit)
        # Where the margin is given by its ends, they stand in the next column already.
        margin = "" if margin == interval else margin
        rows.append((f"{name} {arrow}", format_estimate(estimate, unit), margin, interval, f"{estimate.n:,}"))
    unread = unread_count(result)
    count = result.part or counted(result.total, "sample")
    read = count
    if unread:
        of = (
            f"{result.part}, {result.total - unread:,} of them"
            if result.part
            else f"{result.total - unread:,} of {count}"
        )
        read = f"{of}: the rest is still unread"
    title = marked(f"{result.engine} on {result.benchmark}@{shown_version(result.version)}, {read}", result)
    return _without_margins(title, ("measure", "value", "±", "95 % interval", "n"), rows)


def _without_margins(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The table without its third column, that of the margins, if no row has one."""
    if not any(row[2] for row in rows):
        header, rows = (*header[:2], *header[3:]), [(*row[:2], *row[3:]) for row in rows]
    return Table(title=title, header=header, rows=rows)


def _without_interval(result: Result) -> Table | None:
    """Which values have no interval, so that an empty cell is not taken for certainty (docs/statistics.md)."""
    names = [name for name, found in result.measures.items() if found.value is not None and found.low is None]
    if not names or unread_count(result):
        return None
    return Table(title="", rows=[(f"no interval for {', '.join(names)}: {FEW}",)])


def _below_measures(result: Result, note: str) -> list[Table]:
    """Show the official row, the note, and whether samples are missing from the published set or are drafts."""
    plain = [(line,) for line in (note, result.official) if line]
    found = [Table(title="", rows=plain)] if plain else []
    said = [(line,) for line in notes_of(result)]
    return [*found, Table(title="", rows=said, alarm=True)] if said else found


def notes_of(result: Result) -> list[str]:
    """Return what must stand next to the values of one run.

    They may be over a part, drafts may be their truth, and few pages may carry their error.
    """
    from loupe.results.unverified import accepted_drafts  # brings in the metrics, which `--help` can do without

    return [line for line in (part_of_published(result), accepted_drafts([result]), carried_by_few(result)) if line]


def carried_by_few(result: Result) -> str:
    """Return that few pages carry most of the error, with the measures concerned; "" if none is.

    >>> cer = Estimate(value=0.1, low=0.05, high=0.2, n=30, few_carry_error=True)
    >>> carried_by_few(Result(benchmark="b", version="1", engine="e", signature="", headline="cer",
    ...     measures={"cer": cer}, directions={"cer": False}, units={"cer": "fraction"}))
    'few pages carry most of the error in cer: its interval allows for an unread page that fails altogether'
    """
    flagged = [name for name, one in result.measures.items() if one.few_carry_error and one.low is not None]
    names = [name for name in flagged if not says_twice([result], name)]
    if not names:
        return ""
    allow = "its interval allows" if len(names) == 1 else "their intervals allow"
    return f"few pages carry most of the error in {listed(names)}: {allow} for an unread page that fails altogether"


def part_of_published(result: Result) -> str:
    """That a result is not over the whole of the published set; "" where it is, or where its size is unknown."""
    if result.total >= result.published_total:
        return ""
    whole = f"{result.total:,} of the {result.published_total:,} samples"
    name = f"{result.benchmark}@{shown_version(result.version)}"
    return f"only {whole} of {name}: not comparable with published figures"


def _not_computed(result: Result) -> Table | None:
    """Measures that this run has no value of, so that they do not fill the table, with the reason."""
    reasons: dict[str, list[str]] = {}
    for name, estimate in result.measures.items():
        reason = result.not_computed.get(name, "" if name == result.headline else NOTHING_HERE)
        if estimate.value is None and reason:
            reasons.setdefault(reason, []).append(name)
    if set(reasons) == {NOTHING_HERE}:
        return Table(title=f"not computed: {NOTHING_HERE}", rows=[(", ".join(reasons[NOTHING_HERE]),)])
    rows = [(", ".join(names), reason) for reason, names in reasons.items()]
    return Table(title="not computed", rows=rows) if rows else None


def _worst_slices(result: Result) -> Table | None:
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
    left_out = [f"{len(found) - len(rows):,} more are worse than the overall value"] if len(found) > len(rows) else []
    counts = {"of one sample": single, f"without any {name}": without}
    kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    left_out += [f"left out: {' and '.join(kinds)}"] if kinds else []
    title = f"worst slices by {name}"
    title += f" ({'; '.join([*left_out, 'all: loupe score RUN --by TAG'])})" if left_out else ""
    return _without_margins(title, ("slice", "value", margin_heading(row[2] for row in rows), "n"), rows)


def _slice_measure(result: Result) -> str:
    """The measure by which slices are compared: a headline that is a sum of points grows with the size of a slice."""
    order = [result.headline, *result.measures]
    names = [name for name in order if result.units.get(name, "fraction") == "fraction"]
    return next((name for name in names if _has_value(result, name)), names[0] if names else result.headline)


def _has_value(result: Result, name: str) -> bool:
    return name in result.measures and result.measures[name].value is not None


def _not_as_it_is(result: Result) -> Table | None:
    unread, total = unread_count(result), max(result.total, 1)
    failed = failed_count(result) - unread
    rows = []
    if unread:
        rows.append(("not read", f"{unread:,} of {result.total:,}", percent(unread / total), "not yet scored"))
    if failed:
        counted = _FAILED_ARE[result.failed_are]
        rows.append(("failed", f"{failed:,} of {result.total:,}", percent(failed / total), counted))
    counts = {**result.outcomes, "scorer": _broken(result)}
    counts["missing"] = counts.get("missing", 0) - unread
    # Nothing is the right answer to a page with nothing on it.
    counts["empty"] = counts.get("empty", 0) - int(result.diagnostics.get("empty_on_blank", 0))
    for name, words in _WORDS.items():
        count = counts.get(name, 0)
        if count:
            label = f"  {name}" if name in (*FAILED, "scorer") else name
            rows.append((label, f"{count:,} of {result.total:,}", percent(count / total), words))
    alarm = failed + unread > ALARMING * result.total
    return Table(title="failed or incomplete answers", rows=rows, alarm=alarm) if rows else None


def _failures(result: Result) -> Table | None:
    rows = [(item.sample, item.outcome, one_line(item.error)) for item in result.failures[:LISTED_FAILURES]]
    hidden = len(result.failures) - len(rows)
    if hidden > 0:
        rows.append((f"… and {hidden:,} more", "", "result.json lists them all"))
    return Table(title="first failures", rows=rows) if rows else None


def _beside(result: Result) -> Table | None:
    rows = []
    for name, value in result.diagnostics.items():
        if not value or name in ("failed", *result.outcomes) or name.endswith("_share"):
            continue
        share = result.diagnostics.get(f"{name}_share")
        text = format_diagnostic(name, value)
        rows.append((name.replace("_", " "), text if share is None else f"{text} ({percent(share)})"))
    rows += speed_rows(result)
    return Table(title="beside the score", rows=rows) if rows else None


def format_diagnostic(name: str, value: float) -> str:
    """A number beside the score with its unit: rates in percent, lengths (means over the samples) in characters."""
    if name.endswith("_rate"):
        return format_value(value, "fraction")
    return f"{value:,.0f} characters" if name.endswith("_length") else f"{value:,.4g}"
