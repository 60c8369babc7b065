"""`loupe score`: score what was read, again or for the first time, without any engine."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from loupe.cli.output import as_json, json_option, plain_option, say
from loupe.errors import RunError, UsageError


@click.command("score")
@click.argument("target", metavar="RUN | BENCHMARK ANSWERS", nargs=-1, required=True)
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), metavar="DIR", help="Local copy of the benchmark's data."
)
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Option of the benchmark (bench show).")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), metavar="DIR", help="Root of the runs.")
@click.option("--name", default="", metavar="NAME", help="Name to file the run under. Default: that of the answers.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: one per core.")
@json_option
@plain_option
def command(target: tuple[str, ...], jobs: int | None, json: bool, plain: bool, **flags: object) -> None:
    """Score the predictions of a run again; no engine is needed.

    With a BENCHMARK, ANSWERS are filed as a run and scored: a folder with one text file per sample, JSON lines with id
    and text, or JSON in the benchmark's official layout.
    """
    path = Path(target[0])
    if len(target) == 2:
        path = take_answers(target[0], Path(target[1]), flags)
    elif len(target) > 2:
        raise UsageError("too many arguments", hint="loupe score RUN, or loupe score BENCHMARK ANSWERS")
    elif not path.is_dir():
        raise RunError(f"no run at {path}", hint="loupe runs lists them")
    from loupe.cli.run import json_document, show_result
    from loupe.pipeline import score_run

    result = score_run(path, jobs=jobs)
    if json:
        as_json(json_document([(path, result)]))
    else:
        show_result(path, result, plain=plain)


def take_answers(benchmark: str, answers: Path, flags: dict[str, object]) -> Path:
    """File existing answers as a run, in place of those filed before, and return its folder."""
    from loupe.cli.options import Flags, make_plans
    from loupe.pipeline import file_answers

    if not answers.exists():
        raise RunError(f"no answers at {answers}", hint=f"loupe score {benchmark} FOLDER_OR_FILE")
    reading = msgspec.convert({**flags, "engine": (f"predictions:{answers}",)}, Flags)
    folder, found = file_answers(make_plans(benchmark, reading)[0], answers)
    say(
        f"{len(found.found):,} answers; {len(found.missing):,} missing, {len(found.extra):,} extra, "
        f"{len(found.double):,} double"
    )
    return folder.path
