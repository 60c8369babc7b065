"""`loupe verify`: the official evaluators' own numbers, checked on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loupe.cli.shared.errors import BELOW, MISSING
from loupe.cli.shared.output import as_json, json_option, plain_option, say, table
from loupe.data.extras import install_command
from loupe.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loupe.scoring.parity import Parity


@click.command("verify")
@click.argument("benchmarks", nargs=-1, metavar="[BENCHMARK]...")
@click.option("--all", "everything", is_flag=True, help="All official cases in the checkout that Loupe runs from.")
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, benchmarks: tuple[str, ...], everything: bool, json: bool, plain: bool) -> None:
    """Score the parity cases that come with Loupe, and compare with what the official evaluators returned.

    A checkout of Loupe has many more cases in tests/oracles; --all scores them, too. Benchmarks without cases are
    named. Exits with 1 if any case differs by more than its tolerance, with 4 if a benchmark that was named could not
    be checked.
    """
    from loupe.benchmarks.registry import benchmark_names, full_name
    from loupe.scoring.parity import verifiable, verify

    found = list(verify([full_name(name) for name in benchmarks], everything=everything))
    if json:
        as_json(found)
    else:
        table(("benchmark", "identical", "max |Δ|", ""), [_row(one) for one in found], plain=plain)
        for one in found:
            for sentence in one.deviations:
                say(f"{one.benchmark}: {sentence}")
            for reason, count in one.missing.items():
                say(f"{one.benchmark}: {counted(count, 'case')} not compared: {reason}")
        if not benchmarks and (without := sorted(set(benchmark_names()) - set(verifiable()))):
            say(f"not checked, because Loupe has no cases for them: {', '.join(without)}")
        say(_total(found))
    differs = any(one.identical < one.cases for one in found)
    unchecked = benchmarks and any(one.missing for one in found)
    context.exit(BELOW if differs else MISSING if unchecked else 0)


def _total(found: Sequence[Parity]) -> str:
    """Say how much of all cases was compared; for the others, which they are and what brings what they need."""
    known, compared = (sum(one.known for one in found), sum(one.cases for one in found))
    total = f"{compared:,} of {known:,} cases compared"
    if compared == known:
        return total
    left = ", ".join(f"{one.benchmark} {one.known - one.cases:,}" for one in found if one.cases < one.known)
    return (
        f"{total}; left out: {left} (reasons above); for all of them: {install_command('all')}, then loupe setup math"
    )


def _row(found: Parity) -> tuple[str, str, str, str]:
    if not found.cases and found.missing:
        return found.benchmark, "not checked", "", ""
    left = f"{found.known - found.cases:,} not compared" if found.cases < found.known else ""
    shown = ", ".join(found.differing[:5]) + (" …" if len(found.differing) > 5 else "")
    largest = f"{found.largest:.1e}" if found.largest else "0"
    return (
        found.benchmark,
        f"{found.identical}/{found.cases}",
        largest,
        "; ".join(filter(None, [f"differ: {shown}" if shown else "", left])),
    )
