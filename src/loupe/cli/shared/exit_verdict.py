"""Check what a result is held to: `--strict` and `--fail-under`, and which of several exit codes counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from loupe.cli.shared.errors import BELOW, CRASHED, INTERRUPTED, MISSING, NOT_WRITTEN, SOME_FAILED, USAGE
from loupe.cli.shared.output import say
from loupe.errors import UsageError, did_you_mean
from loupe.types import Benchmark, Estimate, Measure, Result

F = TypeVar("F", bound=Callable[..., Any])
#: From the one that says least to the one that says most.
_CODES = (0, BELOW, USAGE, SOME_FAILED, MISSING, NOT_WRITTEN, CRASHED, INTERRUPTED)


def strict_option(function: F) -> F:
    """`--strict`."""
    text = "Exit with 3 if any sample failed, not only if all did."
    return click.option("--strict", is_flag=True, help=text)(function)


def fail_under_option(function: F) -> F:
    """`--fail-under`."""
    text = "Exit with 1 if the headline, or the measure of --by-measure, is worse than X (in percent, as printed)."
    return click.option("--fail-under", metavar="X", help=text)(function)


def worst_code(codes: Iterable[int]) -> int:
    """The exit code of all together."""
    return max(codes, key=_CODES.index, default=0)


@dataclass(frozen=True, slots=True)
class Floor:
    """The value that the headline must reach, as a fraction or number."""

    headline: Measure
    value: float


def measure_of(benchmark: Benchmark, wanted: str = "") -> Measure:
    """Return the measure of a benchmark that `--by-measure` names, or its headline. Raises UsageError for another name.

    What only the data of a benchmark names is known when it is scored.
    """
    known = {measure.name: measure for measure in benchmark.measures_of([wanted] if wanted else [])}
    if wanted and wanted not in known:
        raise UsageError(
            f"--by-measure {wanted}: {benchmark.title} has no such measure{did_you_mean(wanted, known)}",
            hint=f"choose one of its measures: {', '.join(known)}",
        )
    return known[wanted or benchmark.headline_measure]


def parse_floor(text: str | None, headline: Measure) -> Floor | None:
    """The value of --fail-under. A bare value up to 1 for a percentage is unclear: UsageError."""
    if text is None:
        return None
    number, percent = text.strip().removesuffix("%").strip(), text.strip().endswith("%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--fail-under {text}: not a number", hint="use --fail-under 90")
    if headline.unit != "fraction":
        return Floor(headline, value)
    if 0 < value <= 1 and not percent:
        raise UsageError(
            f"--fail-under {text}: {headline.name} is in percent; did you mean {100 * value:g} %?",
            hint=f"use --fail-under {100 * value:g}, or --fail-under {value:g}%",
        )
    return Floor(headline, value / 100)


def is_below(result: Result, floor: Floor) -> bool:
    """True if the headline does not reach the floor; one without a value does not."""
    value = result.measures.get(floor.headline.name, Estimate(value=None)).value
    return value is None or floor.headline.merit(value) < floor.headline.merit(floor.value)


def verdict(result: Result, floor: Floor | None, *, strict: bool) -> int:
    """The exit code that a result deserves; what is below the floor is said."""
    from loupe.results.headline import has_value, headline_of, value_or_reason
    from loupe.results.sections import failed_count, format_value

    failed = failed_count(result)
    if failed and (strict or failed >= result.total):
        return SOME_FAILED
    if floor is None:
        return 0
    if not is_below(result, floor):
        return 0
    wanted = f"{format_value(floor.value, floor.headline.unit)}"
    say(f"{result.engine}: {floor.headline.name} {value_or_reason(result, floor.headline.name)} is worse than {wanted}")
    there = headline_of([result]).measure
    if not has_value(result, floor.headline.name) and has_value(result, there):
        say(f"judge by a measure that is there: --by-measure {there} --fail-under X")
    return BELOW
