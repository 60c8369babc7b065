"""`loupe infer`: read only. What it leaves is scored by `loupe score`, on this machine or another."""

from __future__ import annotations

from typing import Any

import click

from loupe.cli.errors import INTERRUPTED, SOME_FAILED
from loupe.cli.options import Flags, allow_unverified, make_plans, reading_options
from loupe.cli.output import as_json, json_option, plain_option, print_data, say
from loupe.cli.run import headline_of, pointing_to_check, read_all
from loupe.cli.verdict import strict_option, worst_code
from loupe.errors import word
from loupe.typed import convert
from loupe.types import FAILED


@click.command("infer")
@click.argument("benchmark")
@reading_options
@allow_unverified
@strict_option
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, benchmark: str, strict: bool, json: bool, plain: bool, **flags: Any) -> None:
    """Read the pages only; `loupe score` does the rest, anywhere.

    The run folder it prints holds every answer. Scoring them needs no engine, no GPU and no network.
    """
    with pointing_to_check(benchmark):
        plans = make_plans(benchmark, convert(flags, Flags))
        from loupe.pipeline import infer

        folders, worst = read_all(plans, infer, plain=plain, unit=headline_of(benchmark).unit)
    if json:
        as_json({"runs": [{"run": str(folder.path), "signature": folder.info.signature} for folder in folders]})
    for folder in folders:
        if not json:
            print_data(folder.path)
        for note in folder.info.notes:
            say(note)
        if worst != INTERRUPTED:
            say(f"to score: loupe score {word(folder.path)}")
    failed = strict and any(one.mark in FAILED for folder in folders for one in folder.prediction_places().values())
    context.exit(worst_code([worst, SOME_FAILED if failed else 0]))
