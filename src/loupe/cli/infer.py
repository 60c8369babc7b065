"""`loupe infer`: read only. What it leaves is scored by `loupe score`, on this machine or another."""

from __future__ import annotations

from typing import Any

import click

from loupe.benchmarks.registry import full_name
from loupe.cli.run import pointing_to_check
from loupe.cli.shared.errors import INTERRUPTED, SOME_FAILED
from loupe.cli.shared.exit_verdict import strict_option, worst_code
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.lazy import GroupedCommand, in_group
from loupe.cli.shared.options import allow_unverified, make_plans, reading_options
from loupe.cli.shared.output import as_json, json_option, plain_option, print_data, say
from loupe.cli.shared.reading import read_all
from loupe.cli.shared.suites import benchmarks_argument, infer_series, series_of, suite_options
from loupe.errors import word
from loupe.typed import convert
from loupe.types import FAILED


@click.command("infer", cls=GroupedCommand)
@benchmarks_argument
@in_group("Several benchmarks", suite_options)
@reading_options
@allow_unverified
@strict_option
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context, /, benchmarks: tuple[str, ...], suite: str | None, json: bool, plain: bool, **flags: Any
) -> None:
    """Read the pages only; `loupe score` does the rest, anywhere.

    BENCHMARK is what `loupe run` takes; several are read one after another. The run folders it prints hold every
    answer. Scoring them needs no engine, no GPU and no network.
    """
    strict, skip_missing = flags.pop("strict"), flags.pop("skip_missing")
    reading = convert(flags, Flags)
    series = series_of(benchmarks, suite, skip_missing=skip_missing)
    if series is not None:
        context.exit(infer_series(series, reading, strict=strict, json=json, plain=plain))
    benchmark = full_name(benchmarks[0])
    with pointing_to_check(benchmark):
        plans = make_plans(benchmark, reading)
        from loupe.pipeline import infer

        carried = read_all(plans, infer, plain=plain)
    folders = carried.results
    if json:
        as_json({"runs": [{"run": str(folder.path), "signature": folder.info.signature} for folder in folders]})
    for folder in folders:
        if not json:
            print_data(folder.path)
        for note in folder.info.notes:
            say(note)
    if folders and carried.code != INTERRUPTED:
        say(f"to score: loupe score {word(reading.runs if len(folders) > 1 else folders[0].path)}")
    failed = strict and any(one.mark in FAILED for folder in folders for one in folder.prediction_places().values())
    context.exit(worst_code([carried.code, SOME_FAILED if failed else 0]))
