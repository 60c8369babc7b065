"""What a result is held to: `--strict` and `--fail-under`, and which of several exit codes counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from loupe.cli.shared.errors import BELOW, CRASHED, INTERRUPTED, MISSING, NOT_WRITTEN, SOME_FAILED, USAGE
from loupe.cli.shared.output import say
from loupe.errors import UsageError
from loupe.types import Benchmark, Measure, Result

F = TypeVar("F", bound=Callable[..., Any])
#: From the one that says least to the one that says most.
_CODES = (0, BELOW, USAGE, SOME_FAILED, MISSING, NOT_WRITTEN, CRASHED, INTERRUPTED)


def strict_option(function: F) -> F:
    """`--strict`."""
    text = "Exit with 3 if any sample failed, not only if all did."
    return click.option("--strict", is_flag=True, help=text)(function)


def fail_under_option(function: F) -> F:
    """`--fail-under`."""
    text = "Exit with 1 if the headline is worse than X (in percent, as printed)."
    return click.option("--fail-under", metavar="X", help=text)(function)


def worst_code(codes: Iterable[int]) -> int:
    """The exit code of all together."""
    return max(codes, key=_CODES.index, default=0)


@dataclass(frozen=True, slots=True)
class Floor:
    """What the headline must reach, as a fraction or number."""

    headline: Measure
    value: float


def declared_headline(benchmark: Benchmark) -> Measure:
    """The headline measure of a benchmark."""
    return next(measure for measure in benchmark.measures if measure.name == benchmark.headline_measure)


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
        raise UsageError(f"--fail-under {text}: not a number", hint="--fail-under 90")
    if headline.unit != "fraction":
        return Floor(headline, value)
    if 0 < value <= 1 and not percent:
        raise UsageError(
            f"--fail-under {text}: {headline.name} is in percent; did you mean {100 * value:g} %?",
            hint=f"--fail-under {100 * value:g}, or --fail-under {value:g}%",
        )
    return Floor(headline, value / 100)


def is_below(result: Result, floor: Floor) -> bool:
    """Whether the headline does not reach the floor; one without a value does not."""
    value = result.measures[floor.headline.name].value
    return value is None or floor.headline.merit(value) < floor.headline.merit(floor.value)


def verdict(result: Result, floor: Floor | None, *, strict: bool) -> int:
    """The exit code that a result deserves; what is below the floor is said."""
    from loupe.results.sections import failed_count, format_value

    if strict and failed_count(result):
        return SOME_FAILED
    if floor is None:
        return 0
    if not is_below(result, floor):
        return 0
    headline, value = floor.headline, result.measures[floor.headline.name].value
    wanted = format_value(floor.value, headline.unit)
    say(f"{result.engine}: {headline.name} {format_value(value, headline.unit)} is worse than {wanted}")
    return BELOW
