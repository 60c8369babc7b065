"""`--baseline`, `--fail-on-regression` and `--margin`: a comparison that a CI job can fail on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from loupe.cli.shared.errors import BELOW
from loupe.cli.shared.output import say
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import UsageError

if TYPE_CHECKING:
    from loupe.results.comparing.records import Compared

F = TypeVar("F", bound=Callable[..., Any])


def gate_options(function: F) -> F:
    """The three options."""
    kind: Any = RunPath()
    text = (
        "For --fail-on-regression: fail unless a loss of X or more of the headline is excluded, whatever unread "
        "samples are like (in percent points, or in the measure's own unit). Also fails with too few samples to "
        "exclude it."
    )
    function = click.option("--margin", metavar="X", help=text)(function)
    text = (
        "Exit with 1 if a RUN is worse than the baseline in any measure, by the paired test with correction, or has no "
        "answer to a sample that the baseline has answered."
    )
    function = click.option("--fail-on-regression", is_flag=True, help=text)(function)
    text = "What the others are compared with. Default: the first RUN."
    return click.option("--baseline", type=kind, metavar="RUN", help=text)(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The limits that a comparison is held to."""

    fail_on_regression: bool
    margin: str | None

    def __post_init__(self) -> None:
        if self.margin is not None and not self.fail_on_regression:
            raise UsageError("--margin goes with --fail-on-regression", hint="see the options: loupe compare --help")

    def refuse(self, baseline: Path | None) -> None:
        """Raise UsageError where this was asked of a table of all runs, in which nothing is compared with anything."""
        if baseline is not None or self.fail_on_regression:
            option = "--baseline" if baseline is not None else "--fail-on-regression"
            raise UsageError(f"{option} needs a RUN to compare", hint="run: loupe compare RUN --baseline RUN")

    def judged(self, compared: Compared, by_measure: str = "") -> Compared:
        """Return the comparison with what got worse, if that was asked for.

        A margin has the unit of one measure: it decides nothing about another one that ranks in its place, and fails.
        """
        if not self.fail_on_regression:
            return compared
        from loupe.results.comparing.regressions import regressions, without_margin

        margin = parse_margin(self.margin, compared.units.get(compared.headline, "fraction"))
        if margin is not None and compared.headline_note and not by_measure:
            return msgspec.structs.replace(compared, regressions=without_margin(compared))
        return msgspec.structs.replace(compared, regressions=regressions(compared, margin))

    def code(self, compared: Compared) -> int:
        """Name what got worse, and return the exit code. Where nobody could tell, that is said, too."""
        if compared.regressions is None:
            return 0
        from loupe.results.comparing.regressions import cannot_tell

        for one in compared.regressions:
            say(f"regression: {': '.join(filter(None, [one.name, one.measure, one.why]))}")
        for pair in compared.pairs:
            told = any(one.run == pair.run for one in compared.regressions)
            if self.margin is None and not told and cannot_tell(compared, pair):
                say(f"{pair.name}: too few samples to tell whether {compared.headline} got worse; it passes untested")
        return BELOW if compared.regressions else 0


def parse_margin(text: str | None, unit: str) -> float | None:
    """The value of --margin as a fraction or number. Raises UsageError for what is no size."""
    if text is None:
        return None
    if unit != "fraction" and "%" in text:
        raise UsageError(f"--margin {text}: this measure is no percentage", hint="give the margin in its own unit")
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise UsageError(
            f"--margin {text}: not a size", hint="use --margin 1 to allow a loss of less than one percent point"
        )
    return value / 100 if unit == "fraction" else value
